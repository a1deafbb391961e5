from hologram_lang import *


def onnx_gather(x: DeviceArray[f32], indices: DeviceArray[i64], y: DeviceArray[f32], outer: u32,
                axis: u32, inner: u32, count: u32):
    """y[o, j, i] = x[o, indices[j], i] for x of outer x axis x inner and `count` indices.

    A negative index counts from the end; one that is outside gives 0.
    """
    launch(inner, count, outer)
    block(64, 1, 1)
    i = get_global_id(0)
    j = get_global_id(1)
    o = get_global_id(2)
    if i < inner and j < count and o < outer:
        at = indices[j]
        if at < 0:
            at += axis
        value = 0.0
        if 0 <= at < axis:
            value = x[(u64(o) * axis + u64(at)) * inner + i]
        y[(u64(o) * count + j) * inner + i] = value
