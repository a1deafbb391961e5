"""A random kernel."""
from hologram_lang import *

LIMIT = 3 * 5 - 2
RATE: f32 = 0.1 + 0.2

@inline
def helper_i32(a: i32, b: i32) -> i32:
    if ((a == b) & (b > a)):
        return 0
    c = ((a * a) ** 3)
    return ((c // (a | 1)) | 5)

@inline
def helper_u8(a: u8, b: u8) -> u8:
    if (b == b):
        return (b ^ b)
    c = ((b + b) >> (u32(0x1) % 70))
    return (u8(b) + ~b)

def kernel(in_i32: DeviceArray[i32], in_u8: DeviceArray[u8], in_f32: DeviceArray[f32], in_u32: DeviceArray[u32], out_i32: DeviceArray[i32], out_u8: DeviceArray[u8], out_f32: DeviceArray[f32], out_u32: DeviceArray[u32], near: DeviceArray[f32], hits: DeviceArray[u32], n: u32, s: f32, k: i32):
    """Drawn by a seed."""
    launch(n)
    block(4)
    i = get_global_id()
    if i < n:
        if ((n >> 31) != (in_u8[i] ^ u8(5))):
            v1 = (0x1 - ((0x2 * k) | (in_u8[i] >> 1)))
        else:
            out_i32[i] = ~k
        for k2 in range(10, 1, -3):
            out_f32[i] = ((+n // 3) * (+i + (in_u32[i] // (n | 1))))
        v3: f32 = 1.25
        out_f32[i] = u32((((0x0 if (in_u8[i] == in_u8[i]) else 3) * in_u8[i]) + (in_u8[i] * in_u8[i])))
        v3 *= 0.5
        v3 /= 0.5
        v3 = 2.0
        for k4 in range(u8(0), 9, 100):
            if ((s > v3) or (i32(-1) == k4)):
                v3 += ~k
                v3 += ((s * k) % 0.75)
            pass
        out_i32[i] = 0x7
        out_u8[i] = 7
        out_f32[i] = (((u8(2) if (in_u8[i] != in_u8[i]) else u8(0x0)) << (n % 70)) + ~u8(0xff))
        out_u32[i] = (((i ** 2) << 1) - ((i | i) ** 0))
        atomic_add(hits, i % 4, (in_u32[i] ** (u32(n) % 4)))
        x = f32(in_i32[i] % 5) * 0.25 + RATE
        near[i] = expm1f(x) + cosh(s) + pow(x + 1, 1.5) + fma(x, s, 2.0) + x ** 3 + LIMIT
