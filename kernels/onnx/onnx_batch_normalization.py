from hologram_lang import *


def onnx_batch_normalization(x: DeviceArray[f32], scale: DeviceArray[f32], bias: DeviceArray[f32],
                             mean: DeviceArray[f32], variance: DeviceArray[f32],
                             y: DeviceArray[f32], batch: u32, channels: u32, spatial: u32,
                             eps: f32):
    """y = (x - mean) / sqrt(variance + eps) * scale + bias, each channel with its own four values.

    x is batch x channels x spatial.
    """
    launch(spatial, u64(batch) * channels)
    block(256, 1)
    i = get_global_id(0)
    plane = get_global_id(1)
    if i < spatial and plane < u64(batch) * channels:
        c = plane % channels
        at = u64(plane) * spatial + i
        factor = scale[c] / sqrt(variance[c] + eps)
        y[at] = (x[at] - mean[c]) * factor + bias[c]
