from hologram_lang import *


def gemm_f32(A: DeviceArray[f32], B: DeviceArray[f32], C: DeviceArray[f32],
             m: u32, n: u32, k: u32, lda: u32, ldb: u32, ldc: u32):
    """C = A B for row-major A (m x k), B (k x n), C (m x n); lda, ldb, ldc are the row strides."""
    launch(n, m)
    block(64, 1)
    column = get_global_id(0)
    row = get_global_id(1)
    if row < m and column < n:
        a = u64(row) * lda
        total = 0.0
        for p in range(k):
            total += A[a + p] * B[u64(p) * ldb + column]
        C[u64(row) * ldc + column] = total
