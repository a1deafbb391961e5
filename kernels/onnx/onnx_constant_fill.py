from hologram_lang import *


def onnx_constant_fill(c: DeviceArray[f32], value: f32, n: u32):
    """c = value, everywhere"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = value
