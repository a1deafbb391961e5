from hologram_lang import *


def onnx_tanh(a: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """c = tanh(a)"""
    launch(n)
    i = get_global_id()
    if i < n:
        x = a[i]
        c[i] = tanh(x)
