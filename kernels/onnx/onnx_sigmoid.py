from hologram_lang import *


def onnx_sigmoid(a: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """c = 1 / (1 + exp(-a))"""
    launch(n)
    i = get_global_id()
    if i < n:
        x = a[i]
        c[i] = sigmoid(x)
