from hologram_lang import *


def vector_scalar_add(a: DeviceArray[f32], c: DeviceArray[f32], s: f32, n: u32):
    """c = a + s, for one number s"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = a[i] + s
