from hologram_lang import *


ROWS = 4


def gemm_blocked(A: DeviceArray[f32], B: DeviceArray[f32], C: DeviceArray[f32],
                 m: u32, n: u32, k: u32, lda: u32, ldb: u32, ldc: u32, alpha: f32, beta: f32):
    """C = alpha A B + beta C for row-major A (m x k), B (k x n), C (m x n); lda, ldb, ldc are the row
    strides. With beta = 0, C is not read.

    A thread makes ROWS elements of a column, so that what it reads of B serves all of them; the
    threads of a block that differ in y share columns of B in the cache. Rows behind the last are
    computed from the last, and not stored. Every element is summed along k in order.
    """
    launch(n, (m + ROWS - 1) // ROWS)
    block(64, 16)
    column = get_global_id(0)
    row = u64(get_global_id(1)) * ROWS
    if row < m and column < n:
        last = u64(m) - 1
        a0 = row * lda
        a1 = min(row + 1, last) * lda
        a2 = min(row + 2, last) * lda
        a3 = min(row + 3, last) * lda
        t0 = 0.0
        t1 = 0.0
        t2 = 0.0
        t3 = 0.0
        for p in range(k):
            right = B[u64(p) * ldb + column]
            t0 += A[a0 + p] * right
            t1 += A[a1 + p] * right
            t2 += A[a2 + p] * right
            t3 += A[a3 + p] * right
        t0 *= alpha
        t1 *= alpha
        t2 *= alpha
        t3 *= alpha
        at = row * ldc + column
        if beta != 0:
            t0 += beta * C[at]
            if row + 1 < m:
                t1 += beta * C[at + ldc]
            if row + 2 < m:
                t2 += beta * C[at + u64(ldc) * 2]
            if row + 3 < m:
                t3 += beta * C[at + u64(ldc) * 3]
        C[at] = t0
        if row + 1 < m:
            C[at + ldc] = t1
        if row + 2 < m:
            C[at + u64(ldc) * 2] = t2
        if row + 3 < m:
            C[at + u64(ldc) * 3] = t3
