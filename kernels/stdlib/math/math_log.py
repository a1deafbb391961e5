from hologram_lang import *


def log(a: DeviceArray[f32], b: DeviceArray[f32], n: u32):
    """b = log(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        x = a[i]
        b[i] = logf(x)
