from hologram_lang import *


BLOCK = 64


def reduce_mean(a: DeviceArray[f32], result: DeviceArray[f32], n: u32, count: f32):
    """result[0] = the sum of a, divided by count: n for the mean of a, or the number of elements
    that the n sums in a are of.

    One block; the order of additions is fixed by n.
    """
    launch(BLOCK)
    block(BLOCK)
    total = 0.0
    for i in range(get_local_id(), n, BLOCK):
        total += a[i]
    whole = group_add(total)
    if get_local_id() == 0:
        result[0] = whole / count
