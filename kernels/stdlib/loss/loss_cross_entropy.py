from hologram_lang import *


BLOCK = 64


def loss_cross_entropy(a: DeviceArray[f32], b: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """c[0] = -(the sum of b log softmax(a)) for n logits a and a distribution b over them.

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
        whole = top + log(group_add(total))
        loss = 0.0
        for i in range(get_local_id(), n, BLOCK):
            loss += b[i] * (whole - a[i])
        whole_loss = group_add(loss)
        if get_local_id() == 0:
            c[0] = whole_loss
