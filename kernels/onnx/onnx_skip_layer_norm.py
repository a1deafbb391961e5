from hologram_lang import *


BLOCK = 64


def onnx_skip_layer_norm(x: DeviceArray[f32], skip: DeviceArray[f32], gamma: DeviceArray[f32],
                         beta: DeviceArray[f32], bias: DeviceArray[f32], y: DeviceArray[f32],
                         rows: u32, hidden: u32, eps: f32):
    """y = layer_norm(x + skip + bias) * gamma + beta, a row of `hidden` values at a time.

    A block a row. bias has `hidden` values; give zeros for none.
    """
    launch(u64(rows) * BLOCK)
    block(BLOCK)
    row = get_group_id()
    if row < rows:
        base = u64(row) * hidden
        total = 0.0
        for i in range(get_local_id(), hidden, BLOCK):
            total += x[base + i] + skip[base + i] + bias[i]
        mean = group_add(total) / hidden
        spread = 0.0
        for i in range(get_local_id(), hidden, BLOCK):
            centred = x[base + i] + skip[base + i] + bias[i] - mean
            spread += centred * centred
        scale = 1.0 / sqrt(group_add(spread) / hidden + eps)
        for i in range(get_local_id(), hidden, BLOCK):
            value = x[base + i] + skip[base + i] + bias[i]
            y[base + i] = (value - mean) * scale * gamma[i] + beta[i]
