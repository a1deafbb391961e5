from hologram_lang import *


def onnx_leakyrelu(a: DeviceArray[f32], c: DeviceArray[f32], alpha: f32, n: u32):
    """c = a where a >= 0, alpha * a elsewhere"""
    launch(n)
    i = get_global_id()
    if i < n:
        x = a[i]
        c[i] = x if x >= 0 else alpha * x
