from hologram_lang import *


def onnx_slice(x: DeviceArray[f32], y: DeviceArray[f32], shape: DeviceArray[u32],
               starts: DeviceArray[i64], steps: DeviceArray[i64], strides: DeviceArray[u32],
               rank: u32, n: u32):
    """y = x[starts[0]::steps[0], ...], for any number of axes; steps may be negative.

    shape is y's, strides are x's (elements); starts count from 0. n is the number of elements of
    y.
    """
    launch(n)
    i = get_global_id()
    if i < n:
        left = i
        at = i64(0)
        for k in range(rank):
            d = rank - 1 - k
            at += (starts[d] + i64(left % shape[d]) * steps[d]) * strides[d]
            left //= shape[d]
        y[i] = x[at]
