from hologram_lang import *


def onnx_attention_scores(q: DeviceArray[f32], k: DeviceArray[f32], scores: DeviceArray[f32],
                          batch: u32, queries: u32, keys: u32, depth: u32, scale: f32,
                          causal: bool):
    """scores = q k^T * scale for `batch` pairs (batch times heads): q (queries x depth),
    k (keys x depth), scores (queries x keys).

    causal: a query sees the keys up to its own place, counted from the end of the keys; the
    others get the lowest f32, which softmax turns into 0.
    """
    launch(keys, queries, batch)
    block(64, 1, 1)
    key = get_global_id(0)
    query = get_global_id(1)
    at = get_global_id(2)
    if at < batch and query < queries and key < keys:
        left = (u64(at) * queries + query) * depth
        right = (u64(at) * keys + key) * depth
        total = 0.0
        for d in range(depth):
            total += q[left + d] * k[right + d]
        hidden = causal and u64(key) + queries > u64(query) + keys
        if hidden:
            total = -3.4028234663852886e38
        else:
            total *= scale
        scores[(u64(at) * queries + query) * keys + key] = total
