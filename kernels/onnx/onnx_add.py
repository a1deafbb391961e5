from hologram_lang import *


def onnx_add(a: DeviceArray[f32], b: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """c = a + b, element by element"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = a[i] + b[i]
