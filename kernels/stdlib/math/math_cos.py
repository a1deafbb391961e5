from hologram_lang import *


def cos(a: DeviceArray[f32], b: DeviceArray[f32], n: u32):
    """b = cos(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        x = a[i]
        b[i] = cosf(x)
