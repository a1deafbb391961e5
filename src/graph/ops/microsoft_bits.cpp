// com.microsoft: weights of 2, 4 or 8 bits in blocks that share a scale.
#include "graph/infer.h"
#include "graph/ops/compose.h"
#include "graph/ops/microsoft.h"

namespace hologram::graph::ops {
namespace {

constexpr TypeSet kActivations = {DType::f16, DType::bf16, DType::f32};

Status matmul_bits(InferContext& c) {
  const int64_t bits = c.integer("bits", 4), block = c.integer("block_size");
  const int64_t n = c.integer("N"), k = c.integer("K");
  if (bits != 2 && bits != 4 && bits != 8)
    return fail(ErrorCode::unsupported, "weights of {} bits; supported: 2, 4, 8", bits);
  constexpr int64_t kMost = int64_t{1} << 31;
  if (block < 16 || block > kMost || (block & (block - 1)) != 0 || n < 1 || n > kMost || k < 1 ||
      k > kMost)
    return fail(ErrorCode::invalid_argument,
                "block_size {}, N {}, K {}; a power of 2 from 16 on, and positive sizes", block, n,
                k);
  if (c.integer("weight_prepacked") != 0)
    return fail(ErrorCode::unsupported, "weight_prepacked={} (a layout of GPUs); supported: 0",
                c.integer("weight_prepacked"));
  const Shape* a = c.shape(0);
  if (!a) return {};
  if (a->rank() == 0 || (!(*a)[a->rank() - 1].is_symbol() && (*a)[a->rank() - 1] != Dim(k)))
    return fail(ErrorCode::shape_mismatch, "A {}; the last axis has K = {} elements",
                a->to_string(), k);
  Shape y = *a;
  y[a->rank() - 1] = Dim(n);
  c.set_shape(0, std::move(y));
  return {};
}

// Bytes -> numbers of `bits` bits, low ones first, along the last axis; still bytes.
ValueId unpack(const Writer& w, ValueId bytes, int64_t bits, const Shape& shape,
               size_t rank_before) {
  if (bits == 8) return bytes;
  const auto last = static_cast<int64_t>(rank_before);
  const ValueId mask = w.number(DType::u8, static_cast<double>((1 << bits) - 1));
  ValueId joined = kNoValue;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    const ValueId moved = w.shift_right(bytes, w.number(DType::u8, static_cast<double>(shift)));
    const ValueId part = w.unsqueeze(w.call("BitwiseAnd", {moved, mask}), {last});
    joined = joined == kNoValue ? part : w.concat({joined, part}, last);
  }
  std::vector<int64_t> dims(rank_before, 0);
  dims.back() = shape[shape.rank() - 1].value() * (8 / bits);
  return w.reshape(joined, std::move(dims));
}

// data, indices, scales, zero_points: rows are gathered while they are small, then made numbers.
Result<Values> gather_block_quantized(ComposeContext& c) {
  const Writer w(c);
  const Attributes& a = c.attributes();
  const auto data = c.type(0).shape, scales = c.type(2).shape, indices = c.type(1).shape;
  const DType stored = c.type(0).dtype, type = c.type(2).dtype;
  if (!data || !scales || !indices || data->rank() == 0 || scales->rank() != data->rank())
    return fail(ErrorCode::unsupported, "inputs of unknown or different rank");
  HOLOGRAM_TRY(const size_t axis,
               kernels::normalise_axis(a.integer("gather_axis", 0), data->rank()));
  HOLOGRAM_TRY(const size_t along,
               kernels::normalise_axis(a.integer("quantize_axis", 1), data->rank()));
  const int64_t bits = stored == DType::u8 ? a.integer("bits", 4) : 4;
  const int64_t block = a.integer("block_size", 128);
  const size_t rank = data->rank() - 1 + indices->rank();  // of what is gathered
  if (axis == along) return fail(ErrorCode::invalid_argument, "gather_axis is quantize_axis");
  auto gathered = [&](size_t input) {
    return w.gather(c.in(input), c.in(1), static_cast<int64_t>(axis));
  };
  ValueId values = gathered(0), zeros = c.has(3) ? gathered(3) : kNoValue;
  if (stored == DType::u8) {
    const auto zero_shape = c.has(3) ? c.graph.value(c.in(3)).type.shape : std::nullopt;
    if (axis != 0 || along + 1 != data->rank() || (bits != 2 && bits != 4 && bits != 8) ||
        (*data)[along].is_symbol() || (*scales)[along].is_symbol() ||
        (zero_shape && (*zero_shape)[along].is_symbol()))
      return fail(ErrorCode::unsupported,
                  "u8 of {} bits gathered along axis {} of {} with blocks along axis {}; "
                  "supported: 2, 4 or 8 bits, axis 0, blocks along the last, known sizes",
                  bits, axis, data->to_string(), along);
    values = unpack(w, values, bits, *data, rank);
    if (zeros != kNoValue) {
      zeros = unpack(w, zeros, bits, *zero_shape, rank);
      zeros = w.slice(zeros, static_cast<int64_t>(rank) - 1, 0, (*scales)[along].value());
    } else {
      // One for each scale.
      const ValueId middle = w.number(DType::u8, static_cast<double>(1 << (bits - 1)));
      zeros = w.call("Expand", {middle, w.call("Shape", {gathered(2)})});
    }
  }
  const size_t moved = along < axis ? along : along + indices->rank() - 1;
  NodeBuilder node = c.op("DequantizeLinear");
  node.input(values).input(gathered(2));
  if (zeros != kNoValue) node.input(zeros);
  node.attribute("axis", static_cast<int64_t>(moved)).attribute("block_size", block);
  return Values{w.cast(node.output(), type)};
}

}  // namespace

void add_microsoft_bits(OperatorTable& table) {
  table.add("MatMulNBits", kMicrosoft)
      .signature("A:T1, B:u8, scales:T1, zero_points:T3?, g_idx:i32?, bias:T1? -> Y:T1")
      .where("T1", kActivations)
      .where("T3", kActivations | TypeSet{DType::u8})
      .attributes("K:i, N:i, accuracy_level:i, bits:i, block_size:i, weight_prepacked:i")
      .infer(matmul_bits)
      .kernel();
  table.add("GatherBlockQuantized", kMicrosoft)
      .signature("data:T1, indices:Tind, scales:T2, zero_points:T1? -> output:T2")
      .where("T1", {DType::i4, DType::u4, DType::u8})
      .where("T2", kActivations)
      .where("Tind", kIndices)
      .attributes("bits:i, block_size:i, gather_axis:i, quantize_axis:i")
      .infer(no_shape)
      .compose(gather_block_quantized);
}

}  // namespace hologram::graph::ops
