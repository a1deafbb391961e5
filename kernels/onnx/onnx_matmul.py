from hologram_lang import *


def onnx_matmul(a: DeviceArray[f32], b: DeviceArray[f32], c: DeviceArray[f32],
                batch: u32, m: u32, n: u32, k: u32):
    """c = a b for `batch` row-major pairs: a (m x k), b (k x n), c (m x n)."""
    launch(n, m, batch)
    block(64, 1, 1)
    column = get_global_id(0)
    row = get_global_id(1)
    at = get_global_id(2)
    if at < batch and row < m and column < n:
        left = (u64(at) * m + row) * k
        right = u64(at) * k * n + column
        total = 0.0
        for p in range(k):
            total += a[left + p] * b[right + u64(p) * n]
        c[(u64(at) * m + row) * n + column] = total
