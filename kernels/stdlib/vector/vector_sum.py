from hologram_lang import *


BLOCK = 64


def vector_sum(a: DeviceArray[f32], result: DeviceArray[f32], n: u32):
    """result[0] = the sum of a; 0 when there is none.

    One block by default. Of a launch with more, each sums a share of a, and result has a sum for
    each: summing those is a second launch. The order of additions is fixed by n and the blocks.
    """
    launch(BLOCK)
    block(BLOCK)
    start = u64(0)
    count = n
    if get_num_groups() > 1:
        share = (n // BLOCK // get_num_groups() + 1) * BLOCK
        start = min(u64(get_group_id()) * share, n)
        count = u32(min(n - start, share))
    total = 0.0
    for i in range(get_local_id(), count, BLOCK):
        total += a[start + i]
    whole = group_add(total)
    if get_local_id() == 0:
        result[get_group_id()] = whole
