from hologram_lang import *


def onnx_gemm(a: DeviceArray[f32], b: DeviceArray[f32], c: DeviceArray[f32], y: DeviceArray[f32],
              m: u32, n: u32, k: u32, alpha: f32, beta: f32, trans_a: bool, trans_b: bool,
              c_row_stride: u32, c_column_stride: u32):
    """y = alpha * A B + beta * C, with A = a or its transpose, B = b or its transpose.

    y is m x n. C's element (i, j) is c[i * c_row_stride + j * c_column_stride]: a stride of 0
    broadcasts. With beta = 0, c is not read.
    """
    launch(n, m)
    block(64, 1)
    column = get_global_id(0)
    row = get_global_id(1)
    if row < m and column < n:
        a_start = u64(row) if trans_a else u64(row) * k
        a_step = u64(m) if trans_a else u64(1)
        b_start = u64(column) * k if trans_b else u64(column)
        b_step = u64(1) if trans_b else u64(n)
        total = 0.0
        for p in range(k):
            total += a[a_start + p * a_step] * b[b_start + p * b_step]
        total *= alpha
        if beta != 0:
            total += beta * c[u64(row) * c_row_stride + u64(column) * c_column_stride]
        y[u64(row) * n + column] = total
