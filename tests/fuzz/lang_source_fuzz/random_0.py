"""A random kernel."""
from hologram_lang import *

LIMIT = 3 * 5 - 2
RATE: f32 = 0.1 + 0.2

@inline
def helper_u32(a: u32, b: u32) -> u32:
    for q in range(5):
        if ((b > a) | (b < b)) and q > 1:
            return (b * b)
        b = +b
    return ~b

@inline
def helper_u64(a: u64, b: u64) -> u64:
    for q in range(5):
        if (b > b) and q > 1:
            return (b ^ a)
        b = (a & a)
    return ((b // (b | 1)) >> 1)

@inline
def helper_f16(a: f16, b: f16) -> f16:
    for q in range(5):
        if (not (b < 2.0)) and q > 1:
            return (b // 0.75)
        b = (a - b)
    return (sqrt(abs(b)) - (a * a))

def kernel(in_u32: DeviceArray[u32], in_u64: DeviceArray[u64], in_f16: DeviceArray[f16], out_u32: DeviceArray[u32], out_u64: DeviceArray[u64], out_f16: DeviceArray[f16], near: DeviceArray[f32], hits: DeviceArray[u32], n: u32, s: f32, k: i32):
    """Drawn by a seed."""
    block(4)
    launch(n)
    tile = shared(u64, 4)
    grid = shared(u32, 2, 4)
    i = get_global_id()
    own = get_local_id()
    x = in_u64[i] if i < n else u64(1)
    tile[own] = x
    grid[own % 2, own] = u32(own)
    grid[1 - own % 2, own] = u32(get_group_id() + get_num_groups() * get_global_size())
    barrier()
    for step in range(2):
        y = tile[(own + 3) % 4]
        barrier()
        tile[own] = ((x * 6_148_914_691_236_517_205) ** 0)
        atomic_add(grid, 0, own // 2, u32(own))
        fence()
        barrier()
    all = group_add(tile[own])
    barrier()
    if i < n:
        out_u32[i] = ((2 if (f16(0.5) == n) else 0x1) + (own ^ own))
        out_u64[i] = (1 * (x % (all | 1)))
        out_f16[i] = round((own - f16(0.5)))
        hits[i % 4] = u32(7)
        near[i] = f32(grid[0, own]) + f32(grid[1, own])
