"""A random kernel."""
from hologram_lang import *

LIMIT = 3 * 5 - 2
RATE: f32 = 0.1 + 0.2

@inline
def helper_i8(a: i8, b: i8) -> i8:
    for q in range(5):
        if (a != b == b) and q > 1:
            return (b << (u32(0xffffffff) % 70))
        b = (b - b)
    return +a

@inline
def helper_u64(a: u64, b: u64) -> u64:
    return ((b + b) - max(a, b))

@inline
def helper_f32(a: f32, b: f32) -> f32:
    if ((b != b) | (a > b)):
        return (a % 3)
    c = floor(floor(a))
    return ((b / c) + (c * c))

@inline
def helper_u32(a: u32, b: u32) -> u32:
    return ((a * a) + (a ** 1))

def kernel(in_i8: DeviceArray[i8], in_u64: DeviceArray[u64], in_f32: DeviceArray[f32], in_u32: DeviceArray[u32], out_i8: DeviceArray[i8], out_u64: DeviceArray[u64], out_f32: DeviceArray[f32], out_u32: DeviceArray[u32], near: DeviceArray[f32], hits: DeviceArray[u32], n: u32, s: f32, k: i32):
    """Drawn by a seed."""
    block(1)
    launch(n)
    tile = shared(f32, 1)
    grid = shared(i64, 2, 1)
    i = get_global_id()
    own = get_local_id()
    x = in_f32[i] if i < n else f32(1)
    tile[own] = x
    grid[own % 2, own] = i64(own)
    grid[1 - own % 2, own] = i64(get_group_id() + get_num_groups() * get_global_size())
    barrier()
    for step in range(2):
        y = tile[(own + 3) % 1]
        barrier()
        tile[own] = ((i8(127) / i8(0x5)) * (n & n))
        atomic_add(grid, 0, own // 2, i64(own))
        fence()
        barrier()
    all = group_max(tile[own])
    barrier()
    if i < n:
        out_i8[i] = ~i8(-127)
        out_u64[i] = (+u64(0) << 63)
        out_f32[i] = ((i8(-100) & i8(5)) * (x - -1.5))
        out_u32[i] = ((own ** 0) - (own + 0))
        hits[i % 4] = u32(7)
        near[i] = f32(grid[0, own]) + f32(grid[1, own])
