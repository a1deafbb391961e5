from hologram_lang import *


BLOCK = 64


def layer_norm(input: DeviceArray[f32], gamma: DeviceArray[f32], beta: DeviceArray[f32],
               output: DeviceArray[f32], num_positions: u32, hidden_dim: u32, eps: f32):
    """Each row of hidden_dim values: (x - mean) / sqrt(variance + eps) * gamma + beta.

    A block a row; the variance is taken around the mean, so that large means lose nothing.
    """
    launch(u64(num_positions) * BLOCK)
    block(BLOCK)
    row = get_group_id()
    if row < num_positions:
        base = u64(row) * hidden_dim
        total = 0.0
        for i in range(get_local_id(), hidden_dim, BLOCK):
            total += input[base + i]
        mean = group_add(total) / hidden_dim
        spread = 0.0
        for i in range(get_local_id(), hidden_dim, BLOCK):
            centred = input[base + i] - mean
            spread += centred * centred
        scale = 1.0 / sqrt(group_add(spread) / hidden_dim + eps)
        for i in range(get_local_id(), hidden_dim, BLOCK):
            output[base + i] = (input[base + i] - mean) * scale * gamma[i] + beta[i]
