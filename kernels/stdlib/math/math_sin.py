from hologram_lang import *


def sin(a: DeviceArray[f32], b: DeviceArray[f32], n: u32):
    """b = sin(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        x = a[i]
        b[i] = sinf(x)
