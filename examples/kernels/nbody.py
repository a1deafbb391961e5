from hologram_lang import *

TILE = 64
SOFTENING = 1e-6


def nbody_step(x: DeviceArray[f32, 2], v: DeviceArray[f32, 2], mass: DeviceArray[f32],
               new_x: DeviceArray[f32, 2], new_v: DeviceArray[f32, 2], dt: f32):
    """One step of n bodies that pull each other: x, v are n x 3.

    A block reads the bodies a tile at a time into shared memory.
    """
    launch(len(mass))
    block(TILE)
    px = shared(f32, TILE)
    py = shared(f32, TILE)
    pz = shared(f32, TILE)
    pm = shared(f32, TILE)
    n = len(mass)
    own = get_local_id()
    i = u64(get_global_id())
    at = min(i, n - 1)  # threads past the end follow the last body and store nothing
    x0 = x[at, 0]
    y0 = x[at, 1]
    z0 = x[at, 2]
    ax = 0.0
    ay = 0.0
    az = 0.0
    for first in range(0, n, TILE):
        j = first + own
        if j < n:
            px[own] = x[j, 0]
            py[own] = x[j, 1]
            pz[own] = x[j, 2]
            pm[own] = mass[j]
        else:
            px[own] = 0.0
            py[own] = 0.0
            pz[own] = 0.0
            pm[own] = 0.0
        barrier()
        for k in range(TILE):
            dx = px[k] - x0
            dy = py[k] - y0
            dz = pz[k] - z0
            inverse = 1.0 / sqrt(dx * dx + dy * dy + dz * dz + SOFTENING)
            pull = pm[k] * inverse * inverse * inverse
            ax += dx * pull
            ay += dy * pull
            az += dz * pull
        barrier()
    if i < n:
        new_v[i, 0] = v[i, 0] + ax * dt
        new_v[i, 1] = v[i, 1] + ay * dt
        new_v[i, 2] = v[i, 2] + az * dt
        new_x[i, 0] = x0 + new_v[i, 0] * dt
        new_x[i, 1] = y0 + new_v[i, 1] * dt
        new_x[i, 2] = z0 + new_v[i, 2] * dt
