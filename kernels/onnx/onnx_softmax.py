from hologram_lang import *


BLOCK = 64


def onnx_softmax(x: DeviceArray[f32], y: DeviceArray[f32], outer: u32, axis: u32, inner: u32):
    """y = exp(x - max) / sum along the middle axis of an outer x axis x inner array.

    A block a line along the axis. The largest value is taken off first: nothing overflows.
    """
    launch(u64(outer) * inner * BLOCK)
    block(BLOCK)
    line = get_group_id()
    if line < u64(outer) * inner:
        start = u64(line // inner) * axis * inner + line % inner
        largest = -3.4028234663852886e38
        for k in range(get_local_id(), axis, BLOCK):
            largest = max(largest, x[start + u64(k) * inner])
        top = group_max(largest)
        total = 0.0
        for k in range(get_local_id(), axis, BLOCK):
            total += exp(x[start + u64(k) * inner] - top)
        whole = group_add(total)
        for k in range(get_local_id(), axis, BLOCK):
            at = start + u64(k) * inner
            y[at] = exp(x[at] - top) / whole
