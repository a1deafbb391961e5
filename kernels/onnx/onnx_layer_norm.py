from hologram_lang import *


BLOCK = 256


def onnx_layer_norm(x: DeviceArray[f32], gamma: DeviceArray[f32], beta: DeviceArray[f32],
                    y: DeviceArray[f32], rows: u32, hidden: u32, eps: f32):
    """Each row of hidden values: (x - mean) / sqrt(variance + eps) * gamma + beta.

    A block a row; the variance is taken around the mean, so that large means lose nothing.
    """
    launch(u64(rows) * BLOCK)
    block(BLOCK)
    row = get_group_id()
    if row < rows:
        base = u64(row) * hidden
        total = 0.0
        for i in range(get_local_id(), hidden, BLOCK):
            total += x[base + i]
        mean = group_add(total) / hidden
        spread = 0.0
        for i in range(get_local_id(), hidden, BLOCK):
            centred = x[base + i] - mean
            spread += centred * centred
        scale = 1.0 / sqrt(group_add(spread) / hidden + eps)
        for i in range(get_local_id(), hidden, BLOCK):
            y[base + i] = (x[base + i] - mean) * scale * gamma[i] + beta[i]
