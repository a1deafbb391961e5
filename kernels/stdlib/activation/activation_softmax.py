from hologram_lang import *


BLOCK = 64


def softmax(a: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """c = exp(a - greatest) / the sum of that. All NaN if there is one. c may be a.

    One block. The greatest value is taken off first: nothing overflows.
    """
    launch(BLOCK)
    block(BLOCK)
    if n > 0:
        greatest = a[0]
        for i in range(get_local_id(), n, BLOCK):
            greatest = max(greatest, a[i])
        top = group_max(greatest)
        total = 0.0
        for i in range(get_local_id(), n, BLOCK):
            term = exp(a[i] - top)
            c[i] = term
            total += term
        whole = group_add(total)
        for i in range(get_local_id(), n, BLOCK):
            c[i] = c[i] / whole
