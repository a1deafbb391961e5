from hologram_lang import *


def vector_rsqrt(a: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """c = 1 / sqrt(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        x = a[i]
        c[i] = rsqrt(x)
