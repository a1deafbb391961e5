from hologram_lang import *


def onnx_relu(a: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """c = max(a, 0); NaN stays NaN"""
    launch(n)
    i = get_global_id()
    if i < n:
        x = a[i]
        c[i] = 0 if x < 0 else x
