// Fourier transforms, windows, mel bands.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

// The one number of an input, where known.
const Dim* scalar(const InferContext& c, size_t index) {
  const auto* contents = c.contents(index);
  return contents && contents->size() == 1 ? contents->data() : nullptr;
}

bool is_negative(const Dim& dim) { return !dim.is_symbol() && dim.value() < 0; }

Status dft(InferContext& c) {
  const Shape* x = c.shape(0);
  const Dim* axis_value = scalar(c, 2);
  if (!x || (c.has(2) && (!axis_value || axis_value->is_symbol()))) return {};
  if (x->rank() < 2)
    return fail(ErrorCode::shape_mismatch, "input {}; a signal and its parts expected",
                x->to_string());
  HOLOGRAM_TRY(const size_t axis, c.axis(axis_value ? axis_value->value() : -2, x->rank()));
  const bool inverse = c.integer("inverse") != 0, onesided = c.integer("onesided") != 0;
  Dim length = inverse && onesided ? ((*x)[axis] - 1) * 2 : (*x)[axis];
  if (c.has(1)) length = scalar(c, 1) ? *scalar(c, 1) : unknown_dim();
  if (is_negative(length))
    return fail(ErrorCode::invalid_argument, "a transform of length {}", length.value());
  std::vector<Dim> dims = x->dims();
  dims[axis] = onesided && !inverse ? length / 2 + 1 : length;
  dims.back() = onesided && inverse ? 1 : 2;
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status stft(InferContext& c) {
  const Shape* x = c.shape(0);
  const Dim* step = scalar(c, 1);
  if (!x || x->rank() < 2) return {};
  Dim length = (*x)[1];
  if (const Shape* window = c.shape(2); c.has(2))
    length = window && window->rank() == 1 ? (*window)[0] : unknown_dim();
  if (c.has(3)) length = scalar(c, 3) ? *scalar(c, 3) : unknown_dim();
  Dim frames = unknown_dim();
  if (step && !step->is_symbol() && step->value() > 0) frames = ((*x)[1] - length) / *step + 1;
  if (is_negative(frames) || is_negative(length)) return {};  // the kernel says what is wrong
  const Dim out = c.integer("onesided", 1) != 0 ? length / 2 + 1 : length;
  c.set_shape(0, Shape(std::vector<Dim>{(*x)[0], frames, out, 2}));
  return {};
}

// The attribute output_datatype.
Status set_named_type(InferContext& c) {
  DType type = DType::f32;
  if (c.attributes().has("output_datatype")) {
    auto named = dtype_from_code(static_cast<uint8_t>(c.integer("output_datatype")));
    if (!named)
      return fail(ErrorCode::invalid_argument, "attribute 'output_datatype' names no element type");
    type = *named;
  }
  if (!kNumbers.has(type))
    return fail(ErrorCode::unsupported, "a result of type {}; supported: {}", name_of(type),
                kNumbers.to_string());
  c.set_dtype(0, type);
  return {};
}

Status window(InferContext& c) {
  HOLOGRAM_CHECK(set_named_type(c));
  const Dim* size = scalar(c, 0);
  if (size && is_negative(*size))
    return fail(ErrorCode::invalid_argument, "a window of {} elements", size->value());
  c.set_shape(0, Shape(std::vector<Dim>{size ? *size : unknown_dim()}));
  return {};
}

Status mel_weight_matrix(InferContext& c) {
  HOLOGRAM_CHECK(set_named_type(c));
  const Dim *bands = scalar(c, 0), *length = scalar(c, 1);
  if ((bands && is_negative(*bands)) || (length && is_negative(*length)))
    return fail(ErrorCode::invalid_argument, "num_mel_bins and dft_length must not be negative");
  c.set_shape(0, Shape(std::vector<Dim>{length ? *length / 2 + 1 : unknown_dim(),
                                        bands ? *bands : unknown_dim()}));
  return {};
}

}  // namespace

void add_signal(OperatorTable& table) {
  table.add("DFT")
      .signature("input:T1, dft_length:T2?, axis:i64? -> output:T1")
      .where("T1", kFloats)
      .where("T2", kIndices)
      .attributes("inverse:i, onesided:i")
      .infer(dft)
      .kernel();
  table.add("STFT")
      .signature("signal:T1, frame_step:T2, window:T1?, frame_length:T2? -> output:T1")
      .where("T1", kFloats)
      .where("T2", kIndices)
      .attributes("onesided:i")
      .infer(stft)
      .kernel();
  for (const char* name : {"BlackmanWindow", "HammingWindow", "HannWindow"})
    table.add(name)
        .signature("size:T1 -> output:T2")
        .where("T1", kIndices)
        .where("T2", kNumbers)
        .attributes("output_datatype:i, periodic:i")
        .infer(window)
        .kernel();
  table.add("MelWeightMatrix")
      .signature(
          "num_mel_bins:T1, dft_length:T1, sample_rate:T1, lower_edge_hertz:T2, "
          "upper_edge_hertz:T2 -> output:T3")
      .where("T1", kIndices)
      .where("T2", kFloats)
      .where("T3", kNumbers)
      .attributes("output_datatype:i")
      .infer(mel_weight_matrix)
      .kernel();
}

}  // namespace hologram::graph::ops
