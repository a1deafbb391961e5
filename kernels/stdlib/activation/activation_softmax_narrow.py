from hologram_lang import *


BLOCK = 64


def softmax_narrow(a: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """What softmax does, for a c of 16-bit floats: its terms are computed twice rather than kept in
    c, so that they are rounded to its type only once.
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
            total += exp(a[i] - top)
        whole = group_add(total)
        for i in range(get_local_id(), n, BLOCK):
            c[i] = exp(a[i] - top) / whole
