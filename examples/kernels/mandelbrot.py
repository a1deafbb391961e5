from hologram_lang import *


@inline
def steps_of(cr: f32, ci: f32, limit: u32) -> u32:
    """How many steps z = z * z + c takes to leave the circle of radius 2."""
    zr = 0.0
    zi = 0.0
    for step in range(limit):
        if zr * zr + zi * zi > 4.0:
            return step
        next_zr = zr * zr - zi * zi + cr
        zi = 2.0 * zr * zi + ci
        zr = next_zr
    return limit


def mandelbrot(pixels: DeviceArray[u8, 3], centre_x: f32, centre_y: f32, scale: f32, limit: u32):
    """A picture, rows x columns x 3: `scale` is the width of a pixel."""
    launch(pixels.shape[1], pixels.shape[0])
    block(64, 1)
    x = get_global_id(0)
    y = get_global_id(1)
    if x < pixels.shape[1] and y < pixels.shape[0]:
        cr = centre_x + (f32(x) - f32(pixels.shape[1]) / 2) * scale
        ci = centre_y + (f32(y) - f32(pixels.shape[0]) / 2) * scale
        steps = steps_of(cr, ci, limit)
        glow = sqrt(f32(steps) / limit)
        inside = steps == limit
        pixels[y, x, 0] = u8(0) if inside else u8(255.0 * min(1.0, 1.6 * glow))
        pixels[y, x, 1] = u8(0) if inside else u8(255.0 * glow * glow)
        pixels[y, x, 2] = u8(0) if inside else u8(255.0 * (0.3 + 0.7 * glow) * (1.0 - glow * glow))
