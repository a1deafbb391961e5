"""Operators of the domain com.microsoft."""
import numpy as np


class Symbolic:
    """Adds every case twice: with the sizes it has, and with names for some of them."""
    def __init__(self, suite, symbols):
        self.suite, self.symbols = suite, symbols

    def add(self, *arguments, **named):
        self.suite.add(*arguments, symbols=self.symbols, **named)


def add(s):
    r = np.random.default_rng(7)

    def f32(*dims, scale=1.0):
        return (r.standard_normal(dims) * scale).astype(np.float32)

    def u8(*dims):
        return r.integers(0, 256, dims).astype(np.uint8)

    def i8(*dims):
        return r.integers(-128, 128, dims).astype(np.int8)

    def one(x):
        return np.float32(x)

    activations(s, f32)
    products(s, f32)
    normalisations(s, f32, r)
    attention(s, f32, r)
    quantised(s, f32, u8, i8, one)
    block_quantised(s, f32, r)


def activations(s, f32):
    x, bias = f32(2, 3, 8, scale=3), f32(8)
    s.add("gelu", "Gelu", [x])
    s.add("bias_gelu", "BiasGelu", [x, bias])
    s.add("fast_gelu", "FastGelu", [x])
    s.add("fast_gelu_bias", "FastGelu", [x, bias])
    s.add("quick_gelu", "QuickGelu", [x])
    s.add("quick_gelu_alpha", "QuickGelu", [x], alpha=0.5)


def products(s, f32):
    a, b = f32(2, 3, 4), f32(2, 4, 5)
    s.add("fused_matmul", "FusedMatMul", [a, b], alpha=0.5)
    s.add("fused_matmul_transposed", "FusedMatMul", [f32(2, 4, 3), f32(2, 5, 4)], alpha=2.0, transA=1, transB=1)
    s.add("fused_matmul_batch", "FusedMatMul", [f32(3, 2, 4), f32(4, 2, 5)], transBatchA=1, transBatchB=1)
    s.add("fused_matmul_batch_transposed", "FusedMatMul", [f32(4, 2, 3), f32(5, 2, 4)], transA=1, transB=1, transBatchA=1, transBatchB=1)
    s.add("fused_matmul_batches_4", "FusedMatMul", [f32(3, 2, 6, 4), f32(2, 6, 4, 5)], transBatchA=1)
    s.add("transpose_matmul", "TransposeMatMul", [f32(4, 3), f32(4, 5)], transA=1, alpha=3.0)
    image, weights, bias = f32(1, 2, 6, 6), f32(3, 2, 3, 3), f32(3)
    s.add("fused_conv_relu", "FusedConv", [image, weights, bias], activation="Relu", pads=[1, 1, 1, 1])
    s.add("fused_conv_leaky", "FusedConv", [image, weights, bias], activation="LeakyRelu", activation_params=[0.2])
    s.add("fused_conv_clip", "FusedConv", [image, weights, bias], activation="Clip", activation_params=[-0.5, 0.5])
    s.add("fused_conv_hard_sigmoid", "FusedConv", [image, weights, bias], activation="HardSigmoid", activation_params=[0.3, 0.4])
    s.add("fused_conv_sum", "FusedConv", [image, weights, bias, f32(1, 3, 4, 4)], activation="Relu")
    s.add("fused_conv_tanh", "FusedConv", [image, weights], activation="Tanh", strides=[2, 2])
    s.add("fused_gemm_relu", "FusedGemm", [f32(3, 4), f32(4, 5), f32(5)], activation="Relu", alpha=0.5, beta=2.0)
    s.add("fused_gemm_leaky", "FusedGemm", [f32(4, 3), f32(5, 4), f32(3, 5)], activation="LeakyRelu", activation_alpha=0.1, transA=1, transB=1)
    s.add("fused_gemm_elu", "FusedGemm", [f32(3, 4), f32(4, 5)], activation="Elu", activation_alpha=0.7)


def normalisations(suite, f32, r):
    s = Symbolic(suite, {2: "batch", 3: "rows", 4: "rows", 5: "rows"})
    x, skip, gamma, beta, bias = f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8), f32(8)
    s.add("skip_layer_norm", "SkipLayerNormalization", [x, skip, gamma, beta])
    s.add("skip_layer_norm_bias", "SkipLayerNormalization", [x, skip, gamma, beta, bias], ("f32", None, None, "f32"), epsilon=0.01)
    s.add("skip_layer_norm_no_beta", "SkipLayerNormalization", [x, skip, gamma, None, bias])
    s.add("skip_layer_norm_broadcast", "SkipLayerNormalization", [x, f32(3, 8), gamma, beta])
    s.add("skip_layer_norm_broadcast_1", "SkipLayerNormalization", [x, f32(1, 3, 8), gamma, beta])
    s.add("skip_simplified", "SkipSimplifiedLayerNormalization", [x, skip, gamma])
    s.add("skip_simplified_bias", "SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], ("f32", None, None, "f32"), epsilon=0.1)
    s.add("skip_simplified_2d", "SkipSimplifiedLayerNormalization", [f32(5, 8), f32(5, 8), gamma])
    s.add("simplified", "SimplifiedLayerNormalization", [x, gamma], domain="")
    s.add("simplified_axis", "SimplifiedLayerNormalization", [f32(2, 3, 8), f32(3, 8)], ("f32", "f32"), domain="", axis=1, epsilon=0.1)
    ids, segments = r.integers(0, 10, (2, 4)).astype(np.int32), r.integers(0, 2, (2, 4)).astype(np.int32)
    word, position, segment = f32(10, 8), f32(6, 8), f32(2, 8)
    mask = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], np.int32)
    s.add("embed", "EmbedLayerNormalization", [ids, segments, word, position, segment, gamma, beta, mask], ("f32", "i32"))
    s.add("embed_sum", "EmbedLayerNormalization", [ids, None, word, position, None, gamma, beta], ("f32", "i32", "f32"))
    s.add("embed_positions", "EmbedLayerNormalization",
          [ids, segments, word, position, segment, gamma, beta, None, np.array([[3, 1, 0, 2]], np.int32)], ("f32", None), epsilon=0.2)


def attention(suite, f32, r):
    s = Symbolic(suite, {2: "batch", 4: "rows", 5: "keys", 3: "past", 1: "one"})
    x, weights, bias = f32(2, 4, 8), f32(8, 24), f32(24)
    lengths = np.array([3, 4], np.int32)
    raw = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], np.int32)
    s.add("attention", "Attention", [x, weights, bias], num_heads=2)
    s.add("attention_causal", "Attention", [x, weights, bias], num_heads=2, unidirectional=1)
    s.add("attention_lengths", "Attention", [x, weights, bias, lengths], num_heads=2)
    suite.add("attention_start_end", "Attention", [x, weights, bias, np.array([3, 4, 1, 0], np.int32)], num_heads=2)
    s.add("attention_mask", "Attention", [x, weights, bias, raw], num_heads=2)
    s.add("attention_mask_nothing", "Attention", [x, weights, bias, raw * 0], num_heads=2)
    s.add("attention_mask_3d", "Attention", [x, weights, bias, r.integers(0, 2, (2, 4, 4)).astype(np.int32)], num_heads=2)
    s.add("attention_sizes", "Attention", [x, f32(8, 20), f32(20)], num_heads=2, qkv_hidden_sizes=[8, 8, 4])
    s.add("attention_past", "Attention", [x, weights, bias, None, f32(2, 2, 2, 3, 4)], ("f32", "f32"), num_heads=2, unidirectional=1)
    s.add("attention_present", "Attention", [x, weights, bias], ("f32", "f32"), num_heads=2)
    s.add("attention_bias", "Attention", [x, weights, bias, None, None, f32(1, 2, 4, 4)], num_heads=2)
    s.add("attention_bias_mask", "Attention", [x, weights, bias, raw, None, f32(2, 1, 4, 4)], num_heads=2, mask_filter_value=-5.0)

    q, k, v = f32(2, 4, 8), f32(2, 5, 8), f32(2, 5, 8)
    s.add("mha", "MultiHeadAttention", [q, k, v], num_heads=2)
    s.add("mha_bias", "MultiHeadAttention", [q, k, v, f32(24)], num_heads=2)
    s.add("mha_v_size", "MultiHeadAttention", [q, k, f32(2, 5, 12), f32(28)], num_heads=2)
    s.add("mha_cross", "MultiHeadAttention", [q, f32(2, 2, 5, 4), f32(2, 2, 5, 4)], num_heads=2)
    s.add("mha_cross_bias", "MultiHeadAttention", [q, f32(2, 2, 5, 4), f32(2, 2, 5, 4), f32(24)], num_heads=2)
    s.add("mha_mask", "MultiHeadAttention", [q, k, v, None, np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)], num_heads=2)
    s.add("mha_lengths", "MultiHeadAttention", [q, k, v, None, np.array([3, 5], np.int32)], num_heads=2)
    s.add("mha_attention_bias", "MultiHeadAttention", [q, k, v, None, None, f32(1, 1, 4, 5)], num_heads=2, scale=0.7)
    s.add("mha_past", "MultiHeadAttention", [q, q, q, f32(24), None, None, f32(2, 2, 3, 4), f32(2, 2, 3, 4)],
          ("f32", "f32", "f32"), num_heads=2, unidirectional=1)
    s.add("mha_present", "MultiHeadAttention", [q, k, v], ("f32", "f32", "f32"), num_heads=2)
    s.add("mha_qk", "MultiHeadAttention", [q, k, v], ("f32", "f32", "f32", "f32"), num_heads=2)

    cos, sin = f32(16, 2), f32(16, 2)
    positions = np.array([[3, 4, 5, 6], [0, 1, 2, 3]], np.int64)
    s.add("rotary", "RotaryEmbedding", [q, positions, cos, sin], constants=(2, 3))
    s.add("rotary_offset", "RotaryEmbedding", [q, np.array([5], np.int64), cos, sin], constants=(2, 3))
    s.add("rotary_interleaved", "RotaryEmbedding", [q, positions, cos, sin], constants=(2, 3), interleaved=1)
    s.add("rotary_heads", "RotaryEmbedding", [f32(2, 3, 4, 4), positions, cos, sin], constants=(2, 3))
    s.add("rotary_partial", "RotaryEmbedding", [f32(2, 4, 16), positions, cos, sin], constants=(2, 3), num_heads=2, rotary_embedding_dim=4)

    def gqa(name, query, key, value, past, lengths, total, cos=None, sin=None, extra=(), **attributes):
        s.add(name, "GroupQueryAttention",
              [query, key, value, past[0], past[1], np.array(lengths, np.int32), np.array([total], np.int32).reshape(()), cos, sin, *extra],
              ("f32", "f32", "f32"), num_heads=4, kv_num_heads=2, **attributes)

    none = (f32(2, 2, 0, 16), f32(2, 2, 0, 16))
    q, k, v = f32(2, 4, 64), f32(2, 4, 32), f32(2, 4, 32)
    cos, sin = f32(16, 8), f32(16, 8)
    gqa("gqa_prompt", q, k, v, none, [3, 3], 4)
    gqa("gqa_prompt_no_past", q, k, v, (None, None), [3, 3], 4)
    gqa("gqa_prompt_rotary", q, k, v, none, [3, 3], 4, cos, sin, do_rotary=1)
    gqa("gqa_prompt_packed", f32(2, 4, 128), None, None, none, [3, 3], 4, cos, sin, do_rotary=1)
    gqa("gqa_prompt_interleaved", q, k, v, none, [3, 3], 4, cos, sin, do_rotary=1, rotary_interleaved=1)
    gqa("gqa_prompt_softcap", q, k, v, none, [3, 3], 4, softcap=1.5, scale=0.4)
    gqa("gqa_prompt_window", q, k, v, none, [3, 3], 4, local_window_size=2)
    past = (f32(2, 2, 5, 16), f32(2, 2, 5, 16))
    gqa("gqa_step", f32(2, 1, 64), f32(2, 1, 32), f32(2, 1, 32), past, [5, 5], 6, cos, sin, do_rotary=1)
    gqa("gqa_step_window", f32(2, 1, 64), f32(2, 1, 32), f32(2, 1, 32), past, [5, 5], 6, local_window_size=3)
    shared = (f32(2, 2, 8, 16), f32(2, 2, 8, 16))  # what lies beyond the past is not defined
    for cache in shared:
        cache[0, :, 5:], cache[1, :, 3:] = 0, 0
    gqa("gqa_step_shared", f32(2, 1, 64), f32(2, 1, 32), f32(2, 1, 32), shared, [5, 3], 6, cos, sin, do_rotary=1)
    gqa("gqa_several_steps", f32(1, 3, 64), f32(1, 3, 32), f32(1, 3, 32), (f32(1, 2, 5, 16), f32(1, 2, 5, 16)), [7], 8, cos, sin, do_rotary=1)
    gqa("gqa_step_packed", f32(2, 1, 128), None, None, past, [5, 5], 6)
    gqa("gqa_smooth", q, k, v, none, [3, 3], 4, smooth_softmax=1)
    gqa("gqa_sink", q, k, v, none, [3, 3], 4, extra=(None, None, f32(4)))
    gqa("gqa_bias", q, k, v, none, [3, 3], 4, extra=(None, f32(1, 1, 4, 4)))
    gqa("gqa_positions", q, k, v, none, [3, 3], 4, cos, sin, extra=(np.array([[0, 1, 2, 3], [0, 1, 2, 3]], np.int64),), do_rotary=1)


def quantised(s, f32, u8, i8, one):
    for kind, make in (("u8", u8), ("i8", i8)):
        z = (lambda x: np.uint8(x + 100)) if kind == "u8" else np.int8

        def q(name, op, inputs, **attributes):
            s.add(f"{name}_{kind}", op, inputs, (kind,), slack=True, tolerance=(0, 1), **attributes)

        a, b = make(2, 3, 4), make(3, 4)
        q("qlinear_add", "QLinearAdd", [a, one(0.02), z(3), b, one(0.03), z(-5), one(0.05), z(7)])
        q("qlinear_mul", "QLinearMul", [a, one(0.02), z(3), b, one(0.03), z(-5), one(0.06), z(7)])
        q("qlinear_leaky_relu", "QLinearLeakyRelu", [a, one(0.02), z(3), one(0.03), z(1)], constants=(1, 2, 3, 4), alpha=0.2)
        q("qlinear_sigmoid", "QLinearSigmoid", [a, one(0.05), z(3), one(1 / 256), z(-100)], constants=(1, 2, 3, 4))
        q("qlinear_softmax", "QLinearSoftmax", [a, one(0.05), z(3), one(1 / 256), np.uint8(0) if kind == "u8" else np.int8(-128)],
          constants=(1, 2, 3, 4), axis=-1, attribute_opset=13)
        q("qlinear_softmax_12", "QLinearSoftmax", [a, one(0.02), z(3), one(1 / 256), np.uint8(0) if kind == "u8" else np.int8(-128)],
          constants=(1, 2, 3, 4), axis=1, attribute_opset=12)
        q("qlinear_where", "QLinearWhere", [np.array([True, False, True, False]), a, one(0.02), z(3), b, one(0.03), z(-5), one(0.04), z(1)],
          constants=(2, 3, 5, 6, 7, 8))
        q("qlinear_concat", "QLinearConcat", [one(0.04), z(1), a, one(0.02), z(3), make(2, 1, 4), one(0.03), z(-5)],
          constants=(0, 1, 3, 4, 6, 7), axis=1)
        image, last = make(1, 3, 5, 5), make(1, 5, 5, 3)
        q("qlinear_average_pool", "QLinearAveragePool", [image, one(0.02), z(3), one(0.03), z(1)], kernel_shape=[3, 3], strides=[2, 2],
          pads=[1, 1, 1, 1])
        q("qlinear_average_pool_pads", "QLinearAveragePool", [image, one(0.02), z(3), one(0.03), z(1)], kernel_shape=[3, 3],
          pads=[1, 1, 1, 1], count_include_pad=1)
        q("qlinear_average_pool_last", "QLinearAveragePool", [last, one(0.02), z(3), one(0.03), z(1)], kernel_shape=[2, 2], channels_last=1)
        q("qlinear_global_average_pool", "QLinearGlobalAveragePool", [image, one(0.02), z(3), one(0.01), z(1)])
        q("qlinear_global_average_pool_last", "QLinearGlobalAveragePool", [last, one(0.02), z(3), one(0.01), z(1)], channels_last=1)
        s.add(f"dequantize_{kind}", "DequantizeLinear", [a, one(0.02), z(3)])
        s.add(f"dequantize_axis_{kind}", "DequantizeLinear", [a, f32(3), make(3)], axis=1)
        s.add(f"quantize_{kind}", "QuantizeLinear", [f32(2, 3, 4, scale=3), one(0.05), z(3)], (kind,))
        s.add(f"quantize_axis_{kind}", "QuantizeLinear", [f32(2, 3, 4, scale=3), np.abs(f32(4)) + one(0.01), make(4)], (kind,), axis=-1)
        for other, weights in (("u8", u8), ("i8", i8)):
            zero = np.uint8(130) if other == "u8" else np.int8(4)
            name = f"{kind}_{other}"
            if name == "i8_u8":  # not in ONNX Runtime
                continue
            s.add(f"matmul_integer_to_float_{name}", "MatMulIntegerToFloat",
                  [make(2, 3, 4), weights(4, 5), one(0.02), one(0.03), z(3), zero, f32(5)], constants=(1, 3, 5))
            s.add(f"matmul_integer_to_float_columns_{name}", "MatMulIntegerToFloat",
                  [make(3, 4), weights(4, 5), one(0.02), np.abs(f32(5)), z(3), weights(5)], constants=(1, 3, 5))
        s.add(f"dynamic_quantize_matmul_{kind}", "DynamicQuantizeMatMul", [f32(2, 3, 4), make(4, 5), one(0.03), z(3), f32(5)])
        s.add(f"dynamic_quantize_matmul_columns_{kind}", "DynamicQuantizeMatMul", [f32(3, 4), make(4, 5), np.abs(f32(5)), make(5)])
        s.add(f"qgemm_{kind}", "QGemm", [make(3, 4), one(0.02), z(3), make(4, 5), one(0.03), z(2), None], ("f32",), alpha=0.5)
        for directions, direction in ((1, "forward"), (1, "reverse"), (2, "bidirectional")):
            w, rec = make(directions, 6, 16), make(directions, 4, 16)
            scale, zero = np.full(directions, 0.01, np.float32), np.full(directions, z(2))
            s.add(f"dynamic_quantize_lstm_{direction}_{kind}", "DynamicQuantizeLSTM",
                  [f32(5, 2, 6), w, rec, f32(directions, 32), None, f32(directions, 2, 4), f32(directions, 2, 4), None, scale, zero, scale, zero],
                  ("f32", "f32", "f32"), constants=(1, 2, 8, 9, 10, 11), direction=direction, hidden_size=4, tolerance=(0.02, 0.02))
        scale = np.abs(f32(1, 16, scale=0.01))
        s.add(f"dynamic_quantize_lstm_columns_{kind}", "DynamicQuantizeLSTM",
              [f32(5, 2, 6), make(1, 6, 16), make(1, 4, 16), None, np.array([5, 3], np.int32), None, None, None,
               scale, np.full((1, 16), z(0)), scale, np.full((1, 16), z(0))],
              ("f32", "f32", "f32"), constants=(1, 2, 8, 9, 10, 11), hidden_size=4, tolerance=(0.02, 0.02))
    s.add("qattention", "QAttention", [u8(2, 4, 8), i8(8, 24), f32(24), one(0.02), one(0.01), None, np.uint8(120), np.int8(0)],
          constants=(1, 4, 7), num_heads=2)


def block_quantised(s, f32, r):
    for bits in (2, 4, 8):
        n, k, block = 5, 40, 16
        blocks = -(-k // block)
        b = r.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
        zeros = r.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
        scales = np.abs(f32(n, blocks, scale=0.1))
        common = dict(K=k, N=n, bits=bits, block_size=block)
        s.add(f"matmul_{bits}_bits", "MatMulNBits", [f32(2, 3, k), b, scales], constants=(1, 2), **common)
        s.add(f"matmul_{bits}_bits_row", "MatMulNBits", [f32(1, k), b, scales, zeros], constants=(1, 2, 3), **common)
        s.add(f"matmul_{bits}_bits_zeros", "MatMulNBits", [f32(3, k), b, scales, zeros], constants=(1, 2, 3), **common)
        s.add(f"matmul_{bits}_bits_bias", "MatMulNBits", [f32(3, k), b, scales, None, None, f32(n)], constants=(1, 2, 5), **common)
    bits, n, k, block = 4, 5, 32, 16
    b = r.integers(0, 256, (n, 2, 8)).astype(np.uint8)
    scales, common = np.abs(f32(n, 2, scale=0.1)), dict(K=k, N=n, bits=4, block_size=block)
    s.add("matmul_4_bits_float_zeros", "MatMulNBits", [f32(3, k), b, scales, f32(n, 2, scale=3) + np.float32(8)], constants=(1, 2, 3), **common)
    s.add("matmul_4_bits_groups", "MatMulNBits", [f32(3, k), b, scales, None, r.integers(0, 2, k).astype(np.int32)], constants=(1, 2, 4), **common)
    ids = np.array([[1, 6], [0, 3]], np.int64)
    for bits in (4, 8):
        data = r.integers(0, 256, (7, 32 * bits // 8)).astype(np.uint8)
        zeros = r.integers(0, 256, (7, 2 * bits // 8)).astype(np.uint8)
        attributes = dict(bits=bits, block_size=16, gather_axis=0, quantize_axis=1)
        s.add(f"gather_{bits}_bits", "GatherBlockQuantized", [data, ids, f32(7, 2)], constants=(0, 2), **attributes)
        s.add(f"gather_{bits}_bits_zeros", "GatherBlockQuantized", [data, ids, f32(7, 2), zeros], constants=(0, 2, 3), **attributes)
