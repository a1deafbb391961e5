from hologram_lang import *


SQRT_HALF = 0.7071067811865476


def onnx_bias_gelu(a: DeviceArray[f32], bias: DeviceArray[f32], c: DeviceArray[f32],
                   rows: u32, hidden: u32):
    """c = gelu(a + bias), the bias of `hidden` values added to each row."""
    launch(hidden, rows)
    block(256, 1)
    column = get_global_id(0)
    row = get_global_id(1)
    if row < rows and column < hidden:
        i = u64(row) * hidden + column
        x = a[i] + bias[column]
        c[i] = x * (0.5 * (1.0 + erf(x * SQRT_HALF)))
