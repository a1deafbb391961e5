from hologram_lang import *


@inline
def step(x: i64) -> u16:
    y = x * 3
    if x > 2:
        return u16(y)
    return u16(x)


@inline
def both(x: i64, y: u16) -> u16:
    return u16(x) + y


def kernel(p: DeviceArray[i64], q: DeviceArray[u16], r: DeviceArray[u16], t: DeviceArray[i64], n: u32):
    parallel_map(step, p, q, n)
    parallel_map(both, p, q, r, len(p))
    parallel_reduce(min, p, t, n)
