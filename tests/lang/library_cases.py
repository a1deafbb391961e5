"""Cases for every kernel of the library and the examples: shapes of 0, 1, odd and large, and all parameters."""

import os

import numpy as np

from hologram_lang import load

SIZES = [0, 1, 7, 255, 1001]
LARGE = 20011


def floats(generator, *shape):
    return generator.normal(0, 2, shape).astype(np.float32)


def positive(generator, *shape):
    return (generator.random(shape) * 9 + 0.01).astype(np.float32)


def spread(generator, n):
    """Special values among ordinary ones."""
    values = floats(generator, n)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e30, 80, -80], np.float32)
    if n > len(special):
        values[: len(special)] = special
    return values


SCALARS = {"s": -2.5, "alpha": 0.01, "low": -0.5, "high": 1.5}


def elementwise(name, arrays, scalars, generator):
    for n in SIZES + ([LARGE] if name in ("vector_add", "exp", "onnx_gelu", "relu") else []):
        a = spread(generator, n)
        if name in ("log", "vector_sqrt", "vector_rsqrt", "vector_pow"):
            a = positive(generator, n)
        given = {"a": a, arrays[-1]: np.zeros(n, np.float32), "n": n}
        if len(arrays) == 3:
            given["b"] = positive(generator, n) if name == "vector_pow" else spread(generator, n)
        if name == "loss_binary_cross_entropy":
            given["a"] = generator.choice([0, 0.25, 0.7, 1], n).astype(np.float32)
            given["b"] = generator.choice([0, 0.5, 1], n).astype(np.float32)
        given.update({k: v for k, v in SCALARS.items() if k in scalars})
        yield given


def rows_of(generator):
    return [(0, 5), (1, 1), (3, 7), (2, 256), (2, 301), (1, 700)]


def lines_of():
    return [(0, 3, 2), (1, 1, 1), (2, 5, 3), (3, 300, 1), (1, 33, 7)]


def zeros(*shape):
    return np.zeros(shape, np.float32)


def norm_cases(x, y, rows, hidden):
    def make(g):
        for r, h in rows_of(g):
            yield {x: floats(g, r * h) + 3, "gamma": floats(g, h), "beta": floats(g, h),
                   y: zeros(r * h), rows: r, hidden: h, "eps": 1e-5}
    return make


def gemm_f32(g):
    for m, n, k, more in [(0, 0, 0, 0), (1, 1, 1, 0), (3, 5, 7, 2), (17, 70, 9, 0), (2, 65, 33, 5)]:
        lda, ldb, ldc = k + more, n + more, n + more
        yield {"A": floats(g, m * lda), "B": floats(g, k * ldb), "C": zeros(m * ldc), "m": m,
               "n": n, "k": k, "lda": lda, "ldb": ldb, "ldc": ldc}


def gemv_f32(g):
    for m, n, more in [(0, 0, 0), (1, 1, 0), (3, 301, 4), (5, 7, 0)]:
        yield {"A": floats(g, m * (n + more)), "x": floats(g, n), "y": zeros(m), "m": m, "n": n,
               "lda": n + more}


def matmul(g):
    for b, m, n, k in [(0, 1, 1, 1), (1, 1, 1, 1), (2, 3, 70, 5), (3, 4, 2, 0)]:
        yield {"a": floats(g, b * m * k), "b": floats(g, b * k * n), "c": zeros(b * m * n),
               "batch": b, "m": m, "n": n, "k": k}


def gemm(g):
    for i, (m, n, k) in enumerate([(1, 1, 1), (3, 5, 7), (2, 66, 3), (4, 3, 2), (0, 4, 4)]):
        row, column = [(n, 1), (0, 1), (1, 0), (0, 0), (n, 1)][i]
        yield {"a": floats(g, m * k), "b": floats(g, k * n), "c": floats(g, max(m * n, 1)),
               "y": zeros(m * n), "m": m, "n": n, "k": k, "alpha": 0.5, "beta": [1.5, 1, 2, 0, 1][i],
               "trans_a": bool(i & 1), "trans_b": bool(i & 2), "c_row_stride": row,
               "c_column_stride": column}


def bias_gelu(g):
    for r, h in [(0, 3), (1, 1), (3, 7), (2, 300)]:
        yield {"a": floats(g, r * h), "bias": floats(g, h), "c": zeros(r * h), "rows": r, "hidden": h}


def softmax(g):
    for o, a, i in lines_of():
        yield {"x": floats(g, o * a * i) * 30, "y": zeros(o * a * i), "outer": o, "axis": a, "inner": i}


def skip_layer_norm(g):
    for r, h in rows_of(g):
        yield {"x": floats(g, r * h), "skip": floats(g, r * h), "gamma": floats(g, h),
               "beta": floats(g, h), "bias": floats(g, h), "y": zeros(r * h), "rows": r,
               "hidden": h, "eps": 1e-3}


def attention(g):
    for b, q, k, d, causal in [(1, 1, 1, 1, False), (2, 3, 5, 4, True), (2, 4, 70, 3, True), (0, 2, 2, 2, False), (1, 5, 3, 2, True)]:
        yield {"q": floats(g, b * q * d), "k": floats(g, b * k * d), "scores": zeros(b * q * k),
               "batch": b, "queries": q, "keys": k, "depth": d, "scale": 0.125, "causal": causal}


def conv2d(g):
    # batch, in, height, width, out, kernel, stride, padding, dilation, groups
    for b, ci, h, w, co, kh, kw, sy, sx, pt, pl, pb, pr, dy, dx, gr in [
            (1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1),
            (2, 4, 7, 9, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2),
            (1, 3, 11, 8, 2, 3, 2, 2, 3, 0, 2, 1, 0, 2, 1, 1),
            (1, 4, 6, 70, 4, 1, 5, 1, 1, 0, 2, 0, 2, 1, 1, 4),
            (0, 2, 4, 4, 2, 3, 3, 1, 1, 0, 0, 0, 0, 1, 1, 1),
            (1, 2, 3, 3, 2, 3, 3, 1, 1, 2, 2, 2, 2, 3, 2, 1)]:
        oh = (h + pt + pb - dy * (kh - 1) - 1) // sy + 1
        ow = (w + pl + pr - dx * (kw - 1) - 1) // sx + 1
        oh, ow = max(oh, 0), max(ow, 0)
        yield {"x": floats(g, b * ci * h * w), "w": floats(g, co * (ci // gr) * kh * kw),
               "bias": floats(g, co), "y": zeros(b * co * oh * ow), "batch": b, "in_channels": ci,
               "height": h, "width": w, "out_channels": co, "out_height": oh, "out_width": ow,
               "kernel_height": kh, "kernel_width": kw, "stride_y": sy, "stride_x": sx,
               "pad_top": pt, "pad_left": pl, "dilation_y": dy, "dilation_x": dx, "groups": gr}


def batch_normalization(g):
    for b, c, s in [(0, 2, 3), (1, 1, 1), (2, 3, 5), (1, 2, 300)]:
        yield {"x": floats(g, b * c * s), "scale": floats(g, c), "bias": floats(g, c),
               "mean": floats(g, c), "variance": positive(g, c), "y": zeros(b * c * s),
               "batch": b, "channels": c, "spatial": s, "eps": 1e-5}


def instance_normalization(g):
    for b, c, s in [(0, 2, 3), (1, 1, 1), (2, 3, 5), (1, 2, 300)]:
        yield {"x": floats(g, b * c * s), "scale": floats(g, c), "bias": floats(g, c),
               "y": zeros(b * c * s), "batch": b, "channels": c, "spatial": s, "eps": 1e-5}


def averagepool(g):
    for p, h, w, kh, kw, sy, sx, pt, pl, pb, pr, include in [
            (1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, False), (2, 5, 7, 3, 2, 2, 1, 1, 0, 1, 1, False),
            (2, 5, 7, 3, 3, 2, 2, 1, 1, 1, 1, True), (1, 4, 70, 2, 3, 1, 1, 0, 1, 0, 1, True),
            (0, 3, 3, 2, 2, 1, 1, 0, 0, 0, 0, False)]:
        oh, ow = (h + pt + pb - kh) // sy + 1, (w + pl + pr - kw) // sx + 1
        ceil = p == 2 and include  # a window that reaches past the padding
        oh += ceil
        yield {"x": floats(g, p * h * w), "y": zeros(p * oh * ow), "planes": p, "height": h,
               "width": w, "out_height": oh, "out_width": ow, "kernel_height": kh,
               "kernel_width": kw, "stride_y": sy, "stride_x": sx, "pad_top": pt, "pad_left": pl,
               "pad_bottom": pb, "pad_right": pr, "count_include_pad": include}


def global_average_pool(g):
    for p, s in [(0, 3), (1, 1), (3, 7), (2, 700)]:
        yield {"x": floats(g, p * s), "y": zeros(p), "planes": p, "spatial": s}


def reduction(g):
    for o, a, i in lines_of():
        yield {"x": floats(g, o * a * i), "y": zeros(o * i), "outer": o, "axis": a, "inner": i}


def argmax(g):
    for number, (o, a, i) in enumerate(lines_of()):
        for last in (False, True):
            x = g.integers(-4, 5, o * a * i).astype(np.float32)
            if number == 2:
                x[::3] = np.nan
            yield {"x": x, "y": np.zeros(o * i, np.int64), "outer": o, "axis": a, "inner": i,
                   "select_last": last}


def fill(g):
    for n in SIZES:
        yield {"c": zeros(n), "value": -0.75, "n": n}


def number_range(g):
    for n in SIZES:
        yield {"c": zeros(n), "start": 2.5, "delta": -0.125, "n": n}


def concat(g):
    for o, a, b in [(0, 1, 1), (1, 1, 0), (3, 5, 7), (2, 300, 3), (2, 0, 4)]:
        yield {"a": floats(g, o * a), "b": floats(g, o * b), "c": zeros(o * (a + b)), "outer": o,
               "a_inner": a, "b_inner": b}


def copies(g):
    for n in SIZES:
        yield {"a": spread(g, n), "c": zeros(n), "n": n}


def transpose(g):
    for shape, order in [((1,), (0,)), ((3, 5), (1, 0)), ((2, 3, 4, 5), (2, 0, 3, 1)), ((0, 4), (1, 0)), ((33, 65), (1, 0))]:
        strides = np.cumprod((1,) + shape[:0:-1])[::-1]
        yield {"x": floats(g, int(np.prod(shape))), "y": zeros(int(np.prod(shape))),
               "shape": np.array([shape[d] for d in order], np.uint32),
               "strides": np.array([strides[d] for d in order], np.uint32), "rank": len(shape),
               "n": int(np.prod(shape))}


def gather(g):
    for o, a, i, c in [(1, 1, 1, 1), (2, 5, 3, 4), (3, 7, 70, 2), (2, 4, 3, 0)]:
        indices = g.integers(-a, a, c).astype(np.int64)
        if c == 4:
            indices[:2] = [a, -a - 1]
        yield {"x": floats(g, o * a * i), "indices": indices, "y": zeros(o * c * i), "outer": o,
               "axis": a, "inner": i, "count": c}


def slices(g):
    for shape, starts, steps in [((5,), (4,), (-2,)), ((4, 6), (1, 5), (2, -1)), ((3, 4, 5), (0, 1, 2), (1, 2, 2)), ((2, 2), (2, 0), (1, 1))]:
        x = floats(g, *shape)
        index = tuple(slice(b, None, s) for b, s in zip(starts, steps))
        y = x[index]
        yield {"x": x.ravel(), "y": zeros(y.size), "shape": np.array(y.shape, np.uint32),
               "starts": np.array(starts, np.int64), "steps": np.array(steps, np.int64),
               "strides": np.array([s // 4 for s in x.strides], np.uint32), "rank": len(shape),
               "n": y.size}


def shares(second):
    """Kernels that reduce an array: by one block, and by several of which each has a share."""
    def make(g):
        for n, blocks in [(n, 1) for n in SIZES + [LARGE]] + [(0, 2), (1, 3), (129, 2), (1001, 5)]:
            given = {"a": floats(g, n), "result": zeros(blocks), "n": n}
            if second:
                given["b"] = floats(g, n)
            if blocks > 1:
                given["launch"] = ([blocks, 1, 1], [64, 1, 1])
            yield given
    return make


def reduce_mean(g):
    for n, count in [(0, 1), (1, 1), (7, 7), (64, 1000), (1001, 1001)]:
        yield {"a": floats(g, n), "result": zeros(1), "n": n, "count": count}


def one_softmax(g):
    for n in SIZES:
        yield {"a": floats(g, n) * 30, "c": zeros(n), "n": n}
    yield {"a": np.array([1, np.nan, 2], np.float32), "c": zeros(3), "n": 3}


def cross_entropy(g):
    for n in SIZES:
        yield {"a": floats(g, n), "b": positive(g, n) / max(n, 1), "c": zeros(1), "n": n}


def cross_entropy_class(g):
    for n in SIZES:
        yield {"a": floats(g, n), "b": np.array([n * 2 // 3], np.int64), "c": zeros(1), "n": n}


def gemm_blocked(g):
    for i, given in enumerate(gemm_f32(g)):
        given.update({"C": floats(g, given["C"].size), "alpha": [1, 0.5][i % 2],
                      "beta": [0, 1.5, -1][i % 3]})
        yield given


def mandelbrot(g):
    for rows, columns in [(0, 3), (1, 1), (5, 9), (12, 70)]:
        yield {"pixels": np.zeros((rows, columns, 3), np.uint8), "centre_x": -0.65, "centre_y": 0.0,
               "scale": 0.05, "limit": 20}


def nbody(g):
    for n in [0, 1, 7, 70]:
        yield {"x": floats(g, n, 3), "v": floats(g, n, 3), "mass": positive(g, n),
               "new_x": zeros(n, 3), "new_v": zeros(n, 3), "dt": 0.01}


def histogram(g):
    for n in [0, 1, 255, 9001]:
        yield {"data": g.integers(0, 256, n).astype(np.uint8), "counts": np.zeros(256, np.uint32),
               "n": n}


def transpose_tiled(g):
    for rows, columns in [(0, 3), (1, 1), (5, 7), (33, 18)]:
        yield {"a": floats(g, rows, columns), "b": zeros(columns, rows)}


MAKERS = {
    "mandelbrot": mandelbrot, "nbody_step": nbody, "histogram": histogram,
    "transpose_tiled": transpose_tiled,
    "vector_sum": shares(False), "vector_dot": shares(True), "reduce_min": shares(False),
    "reduce_max": shares(False), "reduce_mean": reduce_mean, "softmax": one_softmax, "softmax_narrow": one_softmax,
    "loss_cross_entropy": cross_entropy, "loss_cross_entropy_class": cross_entropy_class,
    "gemm_blocked": gemm_blocked,
    "layer_norm": norm_cases("input", "output", "num_positions", "hidden_dim"),
    "onnx_layer_norm": norm_cases("input", "output", "num_positions", "hidden_dim"),
    "gemm_f32": gemm_f32,
    "gemv_f32": gemv_f32, "onnx_matmul": matmul, "onnx_gemm": gemm, "onnx_bias_gelu": bias_gelu,
    "onnx_softmax": softmax, "onnx_skip_layer_norm": skip_layer_norm,
    "onnx_attention_scores": attention, "onnx_conv2d": conv2d,
    "onnx_batch_normalization": batch_normalization,
    "onnx_instance_normalization": instance_normalization, "onnx_averagepool": averagepool,
    "onnx_global_average_pool": global_average_pool, "onnx_reduce_sum": reduction,
    "onnx_reduce_mean": reduction, "onnx_argmax": argmax, "onnx_constant_fill": fill,
    "onnx_range": number_range, "onnx_concat": concat, "onnx_flatten": copies,
    "onnx_reshape": copies, "onnx_squeeze": copies, "onnx_unsqueeze": copies,
    "onnx_transpose": transpose, "onnx_gather": gather, "onnx_slice": slices}
# Sums of many terms, and quotients of differences, lose more than one operation does.
TOLERANCE = {"onnx_softmax": 1e-4, "softmax": 1e-4, "softmax_narrow": 1e-4, "nbody_step": 1e-4, "exp": 2e-6}


def write(writer, folders, part, parts):
    files = sorted(os.path.join(root, f) for folder in folders.split(":")
                   for root, _, names in os.walk(folder) for f in names if f.endswith(".py"))
    for number, file in enumerate(files):
        if number % parts != part:
            continue
        kernels = load(file)
        generator = np.random.default_rng(number)
        for name in kernels.names():
            types = dict(kernels.types(name))
            if name.startswith("onnx_cast_"):
                from oracle_cases import draw
                source, target = name.split("_")[2:]
                for n in SIZES:
                    given = {"a": draw(generator, source, n), "n": n,
                             "c": draw(generator, target, n)}
                    writer.case(file, kernels, name, given, label=f"n={n}")
                continue
            arrays = [p for p, t in types.items() if not hasattr(t, "v")  and hasattr(t, "rank")]
            maker = MAKERS.get(name)
            scalars = [p for p in types if p not in arrays]
            makes = maker(generator) if maker else elementwise(name, arrays, scalars, generator)
            made = 0
            for given in makes:
                launch = given.pop("launch", None)
                label = ", ".join(f"{k}={v}" for k, v in given.items() if not hasattr(v, "shape"))
                writer.case(file, kernels, name, given, launch, TOLERANCE.get(name), label)
                made += 1
            assert made > 3, name
