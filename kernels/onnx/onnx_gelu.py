from hologram_lang import *


SQRT_HALF = 0.7071067811865476


def onnx_gelu(a: DeviceArray[f32], c: DeviceArray[f32], n: u32):
    """c = a * (1 + erf(a / sqrt(2))) / 2"""
    launch(n)
    i = get_global_id()
    if i < n:
        x = a[i]
        c[i] = x * (0.5 * (1.0 + erf(x * SQRT_HALF)))
