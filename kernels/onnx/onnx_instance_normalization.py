from hologram_lang import *


BLOCK = 64


def onnx_instance_normalization(x: DeviceArray[f32], scale: DeviceArray[f32],
                                bias: DeviceArray[f32], y: DeviceArray[f32], batch: u32,
                                channels: u32, spatial: u32, eps: f32):
    """Each plane of `spatial` values: (x - mean) / sqrt(variance + eps) * scale + bias.

    x is batch x channels x spatial; scale and bias have `channels` values. A block a plane.
    """
    launch(u64(batch) * channels * BLOCK)
    block(BLOCK)
    plane = get_group_id()
    if plane < u64(batch) * channels:
        base = u64(plane) * spatial
        total = 0.0
        for i in range(get_local_id(), spatial, BLOCK):
            total += x[base + i]
        mean = group_add(total) / spatial
        spread = 0.0
        for i in range(get_local_id(), spatial, BLOCK):
            centred = x[base + i] - mean
            spread += centred * centred
        factor = scale[plane % channels] / sqrt(group_add(spread) / spatial + eps)
        offset = bias[plane % channels]
        for i in range(get_local_id(), spatial, BLOCK):
            y[base + i] = (x[base + i] - mean) * factor + offset
