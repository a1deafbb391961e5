from hologram_lang import *


def vector_sum(a: DeviceArray[f32], result: DeviceArray[f32], n: u32):
    """result[0] = the sum of a; 0 when there is none. One block, a fixed order of additions."""
    parallel_reduce(add, a, result, n)
