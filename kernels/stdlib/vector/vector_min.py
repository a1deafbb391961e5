from hologram_lang import *


def vector_min(a: DeviceArray[f32], b: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """c = min(a, b)"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = min(a[i], b[i])
