"""A random kernel."""
from hologram_lang import *

LIMIT = 3 * 5 - 2
RATE: f32 = 0.1 + 0.2

@inline
def helper_u8(a: u8, b: u8) -> u8:
    for q in range(5):
        if (b != a) and q > 1:
            return ~b
        b = (a ** 1)
    return +a

@inline
def helper_u32(a: u32, b: u32) -> u32:
    for q in range(5):
        if (a == b) and q > 1:
            return (b ** 3)
        b = (a - 100)
    return ((a ** 2) % ((b ** 5) | 1))

def kernel(in_i64: DeviceArray[i64], in_u8: DeviceArray[u8], in_bf16: DeviceArray[bf16], in_u32: DeviceArray[u32], out_i64: DeviceArray[i64], out_u8: DeviceArray[u8], out_bf16: DeviceArray[bf16], out_u32: DeviceArray[u32], near: DeviceArray[f32], hits: DeviceArray[u32], n: u32, s: f32, k: i32):
    """Drawn by a seed."""
    launch(n)
    block(4)
    i = get_global_id()
    if i < n:
        w1 = 3
        while True:
            w1 -= 1
            if w1 < 0:
                break
            for k2 in range(i64(2), 11, 2):
                pass
            v3 = (i64((in_u8[i] * in_u8[i])) ** 2)
            w4 = 3
            while w4 > 0 and (n >= u8(0xff)):
                w4 -= 1
                v3 <<= 2
                v3 += ((in_u8[i] >> 7) + (in_u32[i] << 31))
            if (in_u32[i] > in_u8[i] <= i):
                continue
        out_i64[i] = (((u8(0) << 3) + (in_u8[i] % (in_u8[i] | 1))) | ~in_u8[i])
        out_u32[i] = 10
        out_u32[i] <<= 2
        w5 = 4
        while w5 > 0 and (bf16(1.25) < in_bf16[i] != in_bf16[i]):
            w5 -= 1
            out_i64[i] = 1
            pass
        out_i64[i] = min(((in_i64[i] + i64(0x0)) * -5), ((i64(1) + in_i64[i]) + (in_u8[i] ** 2)), ~i)
        out_u8[i] = +u8(1)
        out_bf16[i] = 1e2
        out_u32[i] = (((i >> 1) ** 3) * ((in_u8[i] - in_u8[i]) ** 1))
        atomic_min(hits, i % 4, +in_u32[i])
        x = f32(in_i64[i] % 5) * 0.25 + RATE
        near[i] = log(x) + asinh(s) + pow(x + 1, 1.5) + fma(x, s, 2.0) + x ** 3 + LIMIT
