from hologram_lang import *


BLOCK = 256


def vector_dot(a: DeviceArray[f32], b: DeviceArray[f32], result: DeviceArray[f32], n: u32):
    """result[0] = the sum of a * b; 0 when there is none. One block, a fixed order of additions."""
    launch(BLOCK)
    block(BLOCK)
    total = 0.0
    for i in range(get_local_id(), n, get_local_size()):
        total += a[i] * b[i]
    total = group_add(total)
    if get_global_id() == 0:
        result[0] = total
