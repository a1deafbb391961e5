from hologram_lang import *


def vector_axpy(a: DeviceArray[f32], b: DeviceArray[f32], c: DeviceArray[f32], s: f32, n: u32):
    """c = s * a + b; the product is rounded before the sum, so that every CPU gives the same bits"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = s * a[i] + b[i]
