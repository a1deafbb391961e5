from hologram_lang import *


def onnx_scalar_mul(a: DeviceArray[f32], c: DeviceArray[f32], s: f32, n: u32):
    """c = a * s"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = a[i] * s
