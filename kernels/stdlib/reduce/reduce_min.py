from hologram_lang import *


BLOCK = 64


def reduce_min(a: DeviceArray[f32], result: DeviceArray[f32], n: u32):
    """result[0] = the least of a; NaN if there is one. Of no elements nothing is stored.

    One block by default. Of a launch with more, each looks through a share of a, and result has a
    value for each: a second launch finds the least of those.
    """
    launch(BLOCK)
    block(BLOCK)
    if n > 0:
        start = u64(0)
        count = n
        if get_num_groups() > 1:
            share = (n // BLOCK // get_num_groups() + 1) * BLOCK
            start = min(u64(get_group_id()) * share, n - 1)
            count = u32(min(n - start, share))
        best = a[start]
        for i in range(get_local_id(), count, BLOCK):
            best = min(best, a[start + i])
        found = group_min(best)
        if get_local_id() == 0:
            result[get_group_id()] = found
