from hologram_lang import *


def onnx_argmax(x: DeviceArray[f32], y: DeviceArray[i64], outer: u32, axis: u32, inner: u32,
                select_last: bool):
    """y = where the largest value stands along the middle axis of an outer x axis x inner array.

    Of equal values the first counts, or the last with select_last. NaN is never the largest. The
    axis must not be empty.
    """
    launch(inner, outer)
    block(64, 1)
    column = get_global_id(0)
    row = get_global_id(1)
    if row < outer and column < inner:
        start = u64(row) * axis * inner + column
        best = x[start]
        at = 0
        for k in range(1, i32(axis)):
            value = x[start + u64(k) * inner]
            if value > best or (select_last and value == best) or (best != best and value == value):
                best = value
                at = k
        y[u64(row) * inner + column] = at
