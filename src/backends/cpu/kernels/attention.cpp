// Scaled dot-product attention.
//
// Queries of one head are taken a block of rows at a time: their scores against all keys, softmax,
// and the product with the values. Half types are widened, and rounded wherever the standard's
// definition has an operator of its own (the products sum in f32): the same bits as its expansion.
#include "backends/cpu/kernels/attention.h"

#include <cmath>
#include <limits>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/softmax.h"

namespace hologram::kernels {
namespace {

constexpr int64_t kRows = 256;  // queries at a time

// The matrices of a [batch, heads, rows, size] tensor, or of the same packed as
// [batch, rows, heads * size].
template <typename T>
struct Heads {
  const T* data = nullptr;
  int64_t batch_step = 0, head_step = 0, row_step = 0;
  const T* matrix(int64_t batch, int64_t head) const {
    return data + batch * batch_step + head * head_step;
  }
};

template <typename T>
Heads<T> heads_of(const T* data, bool packed, int64_t heads, int64_t rows, int64_t size) {
  if (packed) return {data, heads * rows * size, size, heads * size};
  return {data, heads * rows * size, rows * size, size};
}

struct Sizes {
  int64_t batch, heads, kv_heads, rows, keys, past, head_size, v_head_size;
  int64_t total() const { return past + keys; }
};

Result<Sizes> sizes_of(const KernelContext& c) {
  const Dims &q = c.input(0).dims, &k = c.input(1).dims, &v = c.input(2).dims;
  const size_t rank = q.rank();
  auto refuse = [&] {
    return fail(ErrorCode::shape_mismatch, "Q {}, K {} and V {} do not fit", q.to_string(),
                k.to_string(), v.to_string());
  };
  if ((rank != 3 && rank != 4) || k.rank() != rank || v.rank() != rank) return refuse();
  Sizes s{};
  s.batch = q[0];
  s.heads = rank == 4 ? q[1] : c.integer("q_num_heads");
  s.kv_heads = rank == 4 ? k[1] : c.integer("kv_num_heads");
  // Without elements in a head nothing else bounds what an attribute says.
  constexpr int64_t kMostHeads = 1 << 14;
  if (s.heads < 1 || s.kv_heads < 1 || s.heads % s.kv_heads != 0 ||
      (rank == 3 && s.heads > kMostHeads))
    return fail(ErrorCode::shape_mismatch, "{} heads of Q and {} of K and V", s.heads, s.kv_heads);
  s.rows = q[rank - 2];
  s.keys = k[rank - 2];
  if (rank == 3 && (q[2] % s.heads != 0 || k[2] % s.kv_heads != 0 || v[2] % s.kv_heads != 0))
    return refuse();
  s.head_size = rank == 4 ? q[3] : q[2] / s.heads;
  s.v_head_size = rank == 4 ? v[3] : v[2] / s.kv_heads;
  const int64_t k_size = rank == 4 ? k[3] : k[2] / s.kv_heads;
  if (k[0] != s.batch || v[0] != s.batch || v[rank - 2] != s.keys || k_size != s.head_size ||
      (rank == 4 && v[1] != s.kv_heads))
    return refuse();
  if (c.has_input(4) != c.has_input(5))
    return fail(ErrorCode::invalid_argument, "past_key and past_value come together");
  if (!c.has_input(4)) return s;
  if (c.has_input(6))
    return fail(ErrorCode::invalid_argument, "nonpad_kv_seqlen together with past_key");
  const Dims &past_k = c.input(4).dims, &past_v = c.input(5).dims;
  s.past = past_k.rank() == 4 ? past_k[2] : 0;
  if (!(past_k == Dims{s.batch, s.kv_heads, s.past, s.head_size}) ||
      !(past_v == Dims{s.batch, s.kv_heads, s.past, s.v_head_size}))
    return fail(ErrorCode::shape_mismatch, "past_key {} and past_value {} do not fit K {} and V {}",
                past_k.to_string(), past_v.to_string(), k.to_string(), v.to_string());
  return s;
}

// A tensor's elements as T.
template <typename T>
Result<const T*> elements(KernelContext& c, const Tensor& tensor) {
  if (tensor.dtype == dtype_of<T>()) return static_cast<const T*>(tensor.as<T>());
  HOLOGRAM_TRY(auto converted, c.scratch<T>(tensor.count()));
  HOLOGRAM_CHECK(dispatch_number(tensor.dtype, [&]<typename From>() -> Status {
    for (size_t i = 0; i < converted.size(); ++i)
      converted[i] = static_cast<T>(tensor.as<From>()[i]);
    return {};
  }));
  return static_cast<const T*>(converted.data());
}

// Keys or values with what came before them; output `output` where the node asks for it. Also a
// `present` of another type than the computation's is written in its own type.
template <typename T>
Result<Heads<T>> with_past(KernelContext& c, const Sizes& s, size_t input, size_t past,
                           size_t output, int64_t size) {
  const Tensor& own = c.input(input);
  const bool packed = own.dims.rank() == 3, has_past = c.has_input(past);
  if (has_past || c.wants_output(output)) {
    Tensor joined{own.dtype, Dims{s.batch, s.kv_heads, s.total(), size}};
    if (c.wants_output(output)) {
      HOLOGRAM_TRY(joined, c.output(output, joined.dims));
    } else {
      HOLOGRAM_TRY(joined.data, c.memory().scratch(joined.bytes()));
    }
    HOLOGRAM_CHECK(dispatch_size(own.dtype, [&]<typename E>() -> Status {
      if (joined.count() == 0) return {};
      const Heads<E> from = heads_of(own.as<E>(), packed, s.kv_heads, s.keys, size);
      E* to = joined.as<E>();
      for (int64_t i = 0; i < s.batch * s.kv_heads; ++i) {
        if (has_past)
          to = std::copy_n(c.input(past).as<E>() + i * s.past * size, s.past * size, to);
        const E* rows = from.matrix(i / s.kv_heads, i % s.kv_heads);
        for (int64_t row = 0; row < s.keys; ++row)
          to = std::copy_n(rows + row * from.row_step, size, to);
      }
      return {};
    }));
    HOLOGRAM_TRY(const T* data, elements<T>(c, joined));
    return heads_of(data, false, s.kv_heads, s.total(), size);
  }
  HOLOGRAM_TRY(const T* data, elements<T>(c, own));
  return heads_of(data, packed, s.kv_heads, s.keys, size);
}

// attn_mask, is_causal, the window and nonpad_kv_seqlen: what is added to each score.
template <typename T>
struct Bias {
  const T* numbers = nullptr;
  const uint8_t* flags = nullptr;  // of a boolean mask
  int64_t steps[3] = {};           // batch, head, row
  int64_t columns = 0;             // of the mask; keys beyond are masked
  const int64_t* lengths = nullptr;
  int64_t past = 0, rows = 0, total = 0, left = -1, right = -1;
  bool causal = false;

  // Fills the biases of one query; false where it may attend to nothing.
  bool fill(int64_t batch, int64_t head, int64_t row, T* bias) const {
    constexpr T kMasked = -std::numeric_limits<T>::infinity();
    const int64_t at = row + (lengths ? lengths[batch] - rows : past);  // the query's position
    int64_t first = left >= 0 ? at - left : 0, last = total;
    if (right >= 0) last = std::min(last, at + right + 1);
    if (causal) last = std::min(last, at + 1);
    if (lengths) last = std::min(last, lengths[batch]);
    first = std::clamp<int64_t>(first, 0, total);
    last = std::clamp(last, first, total);
    std::fill_n(bias, first, kMasked);
    std::fill(bias + last, bias + total, kMasked);
    std::fill(bias + first, bias + last, T(0));
    if (!numbers && !flags) return first < last;
    const int64_t start = batch * steps[0] + head * steps[1] + row * steps[2];
    bool any = false;
    for (int64_t j = first; j < last; ++j) {
      bias[j] = j >= columns ? kMasked
                : flags      ? (flags[start + j] ? T(0) : kMasked)
                             : numbers[start + j];
      any |= bias[j] != kMasked;
    }
    return any;
  }
};

template <typename T>
Result<Bias<T>> bias_of(KernelContext& c, const Sizes& s) {
  Bias<T> bias{.past = s.past,
               .rows = s.rows,
               .total = s.total(),
               .left = c.integer("left_window_size", -1),
               .right = c.integer("right_window_size", -1),
               .causal = c.integer("is_causal") != 0};
  if (bias.left < -1 || bias.right < -1)
    return fail(ErrorCode::invalid_argument, "window sizes {} and {}; -1 or more", bias.left,
                bias.right);
  // Beyond all keys is beyond, and sums with positions stay in range.
  bias.left = std::min(bias.left, s.rows + bias.total);
  bias.right = std::min(bias.right, s.rows + bias.total);
  if (c.has_input(6)) {
    if (c.input(6).count() != s.batch)
      return fail(ErrorCode::shape_mismatch, "nonpad_kv_seqlen {} for a batch of {}",
                  c.input(6).dims.to_string(), s.batch);
    bias.lengths = c.input(6).as<int64_t>();
    for (const int64_t length : c.input(6).span<int64_t>())
      if (length < 0 || length > bias.total)
        return fail(ErrorCode::out_of_range, "nonpad_kv_seqlen {} of {} keys", length, bias.total);
  }
  if (!c.has_input(3)) return bias;
  const Tensor& mask = c.input(3);
  const int64_t full[] = {s.batch, s.heads, s.rows};
  const size_t rank = mask.dims.rank();
  bool fits = rank >= 1 && rank <= 4 && mask.dims.back() <= s.total();
  const Dims strides = mask.dims.strides();
  for (size_t i = 0; fits && i + 1 < rank; ++i) {
    const size_t axis = i + 4 - rank;
    fits = mask.dims[i] == 1 || mask.dims[i] == full[axis];
    bias.steps[axis] = mask.dims[i] == 1 ? 0 : strides[i];
  }
  if (!fits)
    return fail(ErrorCode::shape_mismatch, "attn_mask {} does not broadcast to {}",
                mask.dims.to_string(), Dims{s.batch, s.heads, s.rows, s.total()}.to_string());
  bias.columns = mask.dims.back();
  if (mask.dtype == DType::boolean) {
    bias.flags = mask.as<uint8_t>();
  } else {
    HOLOGRAM_TRY(bias.numbers, elements<T>(c, mask));
  }
  return bias;
}

// A number as it is in the type the softmax is asked to use.
template <typename T>
T as_precision(DType precision, T value) {
  switch (precision) {
    case DType::f16:
      return static_cast<T>(f16_to_f32(f64_to_f16(value)));
    case DType::bf16:
      return static_cast<T>(bf16_to_f32(f64_to_bf16(value)));
    case DType::f32:
      return static_cast<T>(static_cast<float>(value));
    default:
      return value;
  }
}

// In place; Sum is the type of the arithmetic.
template <typename Sum, typename T>
void softmax(T* x, int64_t n) {
  T top = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < n; ++j) top = std::max(top, x[j]);
  if (top == -std::numeric_limits<T>::infinity()) top = 0;
  Sum sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    const Sum e = std::exp(static_cast<Sum>(x[j]) - static_cast<Sum>(top));
    x[j] = static_cast<T>(e);
    sum += e;
  }
  if (sum == 0) return;
  for (int64_t j = 0; j < n; ++j) x[j] = static_cast<T>(static_cast<Sum>(x[j]) / sum);
}

// Softmax in the type `precision`, whose values are kept as T.
template <typename T>
void softmax_with(DType precision, T* x, int64_t n) {
  if (precision == dtype_of<T>()) return softmax<T>(x, n);
  if (precision == DType::f64) return softmax<double>(x, n);
  for (int64_t j = 0; j < n; ++j) x[j] = as_precision(precision, x[j]);
  if constexpr (std::is_same_v<T, float>)
    softmax_in(precision, x, x, n, 1);
  else
    softmax<T>(x, n);
  for (int64_t j = 0; j < n; ++j) x[j] = as_precision(precision, x[j]);
}

// A copy of a whole operand times `factor`, rounded to the half type.
template <typename T>
Status scale_into(KernelContext& c, DType half, T factor, int64_t count, Heads<T>& heads) {
  HOLOGRAM_TRY(auto scaled, c.scratch<T>(count));
  for (int64_t i = 0; i < count; ++i) scaled[i] = as_precision(half, heads.data[i] * factor);
  heads.data = scaled.data();
  return {};
}

// `type`: of the queries, before they were widened.
template <typename T>
Status attend(KernelContext& c, const Sizes& s, DType type) {
  const bool packed = c.input(0).dims.rank() == 3;
  HOLOGRAM_TRY(Tensor y, c.output(0, packed ? Dims{s.batch, s.rows, s.heads * s.v_head_size}
                                            : Dims{s.batch, s.heads, s.rows, s.v_head_size}));
  HOLOGRAM_TRY(Heads<T> k, with_past<T>(c, s, 1, 4, 1, s.head_size));
  HOLOGRAM_TRY(const Heads<T> v, with_past<T>(c, s, 2, 5, 2, s.v_head_size));
  Heads<T> q = heads_of<T>(c.input(0).as<T>(), packed, s.heads, s.rows, s.head_size);
  const Heads<T> out = heads_of<T>(y.as<T>(), packed, s.heads, s.rows, s.v_head_size);
  HOLOGRAM_TRY(const Bias<T> bias, bias_of<T>(c, s));
  const int64_t mode = c.integer("qk_matmul_output_mode"), total = s.total();
  if (mode < 0 || mode > 3)
    return fail(ErrorCode::invalid_argument, "qk_matmul_output_mode {}; supported: 0 to 3", mode);
  T* shown = nullptr;  // the scores the node wants to see
  if (c.wants_output(3)) {
    HOLOGRAM_TRY(Tensor scores, c.output(3, {s.batch, s.heads, s.rows, total}));
    shown = scores.as<T>();
  }
  if (y.count() == 0) return {};
  const bool half = type != dtype_of<T>();
  auto rounded = [&](T value) { return half ? as_precision(type, value) : value; };
  T scale = static_cast<T>(
      c.number("scale", s.head_size > 0 ? 1 / std::sqrt(static_cast<double>(s.head_size)) : 1));
  const T cap = static_cast<T>(c.number("softcap", 0));
  const DType precision = dtype_from_code(static_cast<uint8_t>(c.integer(
                                              "softmax_precision", static_cast<int64_t>(type))))
                              .value_or(type);
  if (half) {
    const T root = rounded(std::sqrt(scale));
    HOLOGRAM_CHECK(scale_into(c, type, root, s.batch * s.heads * s.rows * s.head_size, q));
    HOLOGRAM_CHECK(scale_into(c, type, root, s.batch * s.kv_heads * total * s.head_size, k));
    scale = 1;
  }

  const int64_t block = std::min(kRows, s.rows);
  HOLOGRAM_TRY(auto scores, c.scratch<T>(block * total));
  HOLOGRAM_TRY(auto biases, c.scratch<T>(block * total));
  GemmScratch scratch;
  for (int64_t part = 0; part < s.batch * s.heads; ++part) {
    const int64_t batch = part / s.heads, head = part % s.heads;
    const int64_t kv_head = head / (s.heads / s.kv_heads);
    for (int64_t first = 0; first < s.rows; first += block) {
      const int64_t rows = std::min(block, s.rows - first);
      HOLOGRAM_CHECK(gemm<T>({.m = rows,
                              .n = total,
                              .k = s.head_size,
                              .a = q.matrix(batch, head) + first * q.row_step,
                              .a_row = q.row_step,
                              .a_column = 1,
                              .b = k.matrix(batch, kv_head),
                              .b_row = 1,
                              .b_column = k.row_step,
                              .c = scores.data(),
                              .c_row = total},
                             c, scratch));
      c.threads().parallel_for(
          rows, std::max<int64_t>(1, 4096 / (total + 1)), [&](size_t begin, size_t end) {
            for (size_t row = begin; row < end; ++row) {
              T *x = scores.data() + row * total, *b = biases.data() + row * total;
              T* show = shown ? shown + (part * s.rows + first + row) * total : nullptr;
              for (int64_t j = 0; j < total; ++j) x[j] = rounded(x[j] * scale);
              if (show && mode == 0) std::copy_n(x, total, show);
              if (cap > 0)
                for (int64_t j = 0; j < total; ++j)
                  x[j] = rounded(cap * rounded(std::tanh(rounded(x[j] / cap))));
              if (show && mode == 1) std::copy_n(x, total, show);
              const bool any = bias.fill(batch, head, first + row, b);
              // Chosen, not added: a masked score may be infinite or no number.
              for (int64_t j = 0; j < total; ++j)
                x[j] = b[j] == -std::numeric_limits<T>::infinity() ? b[j] : rounded(x[j] + b[j]);
              if (show && mode == 2) std::copy_n(x, total, show);
              if (any)
                softmax_with(precision, x, total);
              else
                std::fill_n(x, total, T(0));
              for (int64_t j = 0; half && j < total; ++j) x[j] = rounded(x[j]);
              if (show && mode == 3) std::copy_n(x, total, show);
            }
          });
      HOLOGRAM_CHECK(gemm<T>({.m = rows,
                              .n = s.v_head_size,
                              .k = total,
                              .a = scores.data(),
                              .a_row = total,
                              .a_column = 1,
                              .b = v.matrix(batch, kv_head),
                              .b_row = v.row_step,
                              .b_column = 1,
                              .c = const_cast<T*>(out.matrix(batch, head)) + first * out.row_step,
                              .c_row = out.row_step},
                             c, scratch));
    }
  }
  return {};
}

// Queries of the half type `type`, which arrive as f32.
template <DType type>
Status attention_in(KernelContext& c) {
  HOLOGRAM_TRY(const Sizes s, sizes_of(c));
  return attend<float>(c, s, type);
}

Status attention_wide(KernelContext& c) {
  HOLOGRAM_TRY(const Sizes s, sizes_of(c));
  const DType type = c.input(0).dtype;
  return dispatch_float(type, [&]<typename T>() { return attend<T>(c, s, type); });
}

Status attention(KernelContext& c) {
  const DType type = c.input(0).dtype;
  const KernelFunction run = type == DType::f16    ? attention_in<DType::f16>
                             : type == DType::bf16 ? attention_in<DType::bf16>
                                                   : attention_wide;
  return run_kernel({"Attention", run, true}, c);
}

constexpr Kernel kKernels[] = {
    {"Attention", attention},
    {"LinearAttention", linear_attention, true},
    {"RotaryEmbedding", rotary_embedding, true},
};

}  // namespace

std::span<const Kernel> attention_kernels() { return kKernels; }

}  // namespace hologram::kernels
