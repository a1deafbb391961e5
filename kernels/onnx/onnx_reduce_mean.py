from hologram_lang import *


BLOCK = 64


def onnx_reduce_mean(x: DeviceArray[f32], y: DeviceArray[f32], outer: u32, axis: u32, inner: u32):
    """y = the mean along the middle axis of an outer x axis x inner array. A block a result."""
    launch(u64(outer) * inner * BLOCK)
    block(BLOCK)
    line = get_group_id()
    if line < u64(outer) * inner:
        start = u64(line // inner) * axis * inner + line % inner
        total = 0.0
        for k in range(get_local_id(), axis, BLOCK):
            total += x[start + u64(k) * inner]
        whole = group_add(total)
        if get_local_id() == 0:
            y[line] = whole / axis
