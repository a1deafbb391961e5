from hologram_lang import *


def onnx_range(c: DeviceArray[f32], start: f32, delta: f32, n: u32):
    """c[i] = start + i * delta"""
    launch(n)
    i = get_global_id()
    if i < n:
        c[i] = start + i * delta
