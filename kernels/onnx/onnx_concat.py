from hologram_lang import *


def onnx_concat(a: DeviceArray[f32], b: DeviceArray[f32], c: DeviceArray[f32], outer: u32,
                a_inner: u32, b_inner: u32):
    """Each row of c is a row of a, then a row of b: a is outer x a_inner, b is outer x b_inner.

    Axis and what follows it are the row. More than two arrays are joined one after another.
    """
    launch(u64(a_inner) + b_inner, outer)
    block(256, 1)
    column = u64(get_group_id(0)) * get_local_size(0) + get_local_id(0)
    row = get_global_id(1)
    inner = u64(a_inner) + b_inner
    if row < outer and column < inner:
        if column < a_inner:
            c[row * inner + column] = a[u64(row) * a_inner + column]
        else:
            c[row * inner + column] = b[u64(row) * b_inner + column - a_inner]
