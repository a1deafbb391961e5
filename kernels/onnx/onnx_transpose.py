from hologram_lang import *


def onnx_transpose(x: DeviceArray[f32], y: DeviceArray[f32], shape: DeviceArray[u32],
                   strides: DeviceArray[u32], rank: u32, n: u32):
    """y = x with its axes in another order, for any number of axes.

    shape is y's; strides[d] is how far apart in x are neighbours along y's axis d (elements).
    n is the number of elements.
    """
    launch(n)
    i = get_global_id()
    if i < n:
        left = i
        at = u64(0)
        for k in range(rank):
            d = rank - 1 - k
            at += u64(left % shape[d]) * strides[d]
            left //= shape[d]
        y[i] = x[at]
