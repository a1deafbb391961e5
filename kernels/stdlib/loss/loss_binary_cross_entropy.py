from hologram_lang import *


LOWEST = -100.0


def loss_binary_cross_entropy(a: DeviceArray[f32], b: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """c = -(b log a + (1 - b) log(1 - a)) for probabilities a and targets b.

    The logarithms are held above -100, so that probabilities of 0 and 1 stay finite.
    """
    launch(n)
    i = get_global_id()
    if i < n:
        p = a[i]
        t = b[i]
        c[i] = -(t * max(log(p), LOWEST) + (1 - t) * max(log1p(-p), LOWEST))
