from hologram_lang import *


BLOCK = 64


def gemv_f32(A: DeviceArray[f32], x: DeviceArray[f32], y: DeviceArray[f32],
             m: u32, n: u32, lda: u32):
    """y = A x for a row-major A (m x n) with row stride lda. A block a row."""
    launch(u64(m) * BLOCK)
    block(BLOCK)
    row = get_group_id()
    if row < m:
        base = u64(row) * lda
        total = 0.0
        for i in range(get_local_id(), n, BLOCK):
            total += A[base + i] * x[i]
        whole = group_add(total)
        if get_local_id() == 0:
            y[row] = whole
