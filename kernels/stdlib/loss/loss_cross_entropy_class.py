from hologram_lang import *


BLOCK = 64


def loss_cross_entropy_class(a: DeviceArray[f32], b: DeviceArray[i64], c: DeviceArray[f32], n: u32):
    """c[0] = -log softmax(a)[b[0]] for n logits a and a class b[0], which must be one of 0 to n - 1.

    One block. The logarithm of softmax(a) is a - greatest - log(the sum of exp(a - greatest)).
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
        if get_local_id() == 0:
            c[0] = top + log(whole) - a[b[0]]
