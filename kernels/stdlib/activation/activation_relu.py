from hologram_lang import *


def relu(a: DeviceArray[f32], b: DeviceArray[f32], n: u32):
    """b = max(a, 0); NaN stays NaN"""
    launch(n)
    i = get_global_id()
    if i < n:
        x = a[i]
        b[i] = 0 if x < 0 else x
