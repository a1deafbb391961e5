#include "compiler/weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "holotensor/encoder.h"
#include "holotensor/format.h"
#include "holotensor/values.h"
#include "holotensor/writer.h"

namespace hologram::compiler {

using graph::Tensor;

Result<WeightEncoding> parse_weight_encoding(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorCode::invalid_argument,
                "'{}' is no way to store weights; write SCHEME:FRAGMENTS or SCHEME:FRAGMENTS,any, "
                "such as refine:8",
                text);
  };
  WeightEncoding encoding;
  std::string_view rest = text;
  if (rest.ends_with(",any")) {
    encoding.encoder.distribution = holotensor::Distribution::any;
    rest.remove_suffix(4);
  }
  const size_t colon = rest.find(':');
  if (colon == rest.npos) return bad();
  HOLOGRAM_TRY(encoding.encoder.scheme, holotensor::scheme_from_name(rest.substr(0, colon)));
  rest.remove_prefix(colon + 1);
  unsigned fragments = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), fragments);
  if (error != std::errc{} || end != rest.data() + rest.size()) return bad();
  if (fragments < 1 || fragments > holotensor::kMaxFragments)
    return fail(ErrorCode::invalid_argument, "{} fragments; from 1 to {} are possible", fragments,
                holotensor::kMaxFragments);
  encoding.encoder.fragments = static_cast<uint16_t>(fragments);
  encoding.encoder.min_fragments =
      std::min(encoding.encoder.min_fragments, encoding.encoder.fragments);
  return encoding;
}

namespace {

// Which operand of a step holds 8-bit weights; -1: none. Where DequantizeLinear was expanded, a
// pointwise program begins by casting them and makes floats.
int weight_operand(const archive::ModelT& model, const archive::PlanT& plan,
                   const archive::StepT& step) {
  std::string_view kernel = step.kernel;
  if (kernel.starts_with("hologram.")) kernel.remove_prefix(9);
  if (step.kind == archive::StepKind::control) return -1;
  if (step.kind == archive::StepKind::program) {
    const bool floats = std::ranges::all_of(step.outputs, [&](uint32_t id) {
      const auto type = static_cast<DType>(model.types[plan.values[id]->type]->dtype);
      return type == DType::f32 || type == DType::f16 || type == DType::bf16;
    });
    return floats && kernel.starts_with("Cast") ? 0 : -1;
  }
  if (kernel == "DequantizeLinear") return 0;
  if (kernel == "MatMulInteger" || kernel == "ConvInteger") return 1;
  if (kernel == "QLinearMatMul" || kernel == "QLinearConv") return 3;
  return -1;
}

// How the plans use each constant.
struct Uses {
  std::map<int32_t, std::string> names;  // of a value that is the constant
  std::set<int32_t> attributes;          // constants that are attributes
  std::set<int32_t> others;              // read by other than a weight operand
};

void collect(const archive::ModelT& model, const archive::PlanT& plan, Uses& uses) {
  const auto constant_of = [&](uint32_t id) {
    const bool constant =
        id < plan.values.size() && plan.values[id]->storage == archive::Storage::constant;
    return constant ? plan.values[id]->constant : -1;
  };
  for (uint32_t id = 0; id < plan.values.size(); ++id)
    if (const int32_t c = constant_of(id); c >= 0 && !plan.values[id]->name.empty())
      uses.names.try_emplace(c, plan.values[id]->name);
  for (uint32_t id : plan.outputs) uses.others.insert(constant_of(id));
  // Rows of codes that are chosen before they become floats.
  std::set<uint32_t> dequantised, otherwise(plan.outputs.begin(), plan.outputs.end());
  for (const auto& step : plan.steps) {
    const int weight = weight_operand(model, plan, *step);
    for (size_t i = 0; i < step->inputs.size(); ++i)
      (static_cast<int>(i) == weight ? dequantised : otherwise).insert(step->inputs[i]);
    for (const auto& sub : step->subplans) otherwise.insert(sub->outer.begin(), sub->outer.end());
  }
  const auto gathers_weights = [&](const archive::StepT& step) {
    return step.kernel == "Gather" && step.kind != archive::StepKind::control &&
           dequantised.contains(step.outputs[0]) && !otherwise.contains(step.outputs[0]);
  };
  for (const auto& step : plan.steps) {
    const int weight = gathers_weights(*step) ? 0 : weight_operand(model, plan, *step);
    for (size_t i = 0; i < step->inputs.size(); ++i)
      if (static_cast<int>(i) != weight) uses.others.insert(constant_of(step->inputs[i]));
    for (const auto& attribute : step->attributes) uses.attributes.insert(attribute->constant);
    for (const auto& sub : step->subplans) {
      for (uint32_t id : sub->outer) uses.others.insert(constant_of(id));
      collect(model, *sub->plan, uses);
    }
  }
}

// Planes come from the top: an infinite mask would be zeros until the last fragment.
bool all_finite(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.count()));
  return holotensor::to_f32(tensor.dtype, {tensor.data, tensor.bytes()}, values) &&
         std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

bool is_weight(const Tensor& tensor, int32_t index, const Uses& uses, int64_t plain_below) {
  if (tensor.dtype == DType::string || tensor.count() < plain_below ||
      uses.attributes.contains(index))
    return false;
  switch (tensor.dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
      return all_finite(tensor);
    case DType::i8:
    case DType::u8:
      return !uses.others.contains(index);
    default:
      return false;
  }
}

}  // namespace

Result<EncodedWeights> encode_weights(Lowered& lowered, const WeightEncoding& encoding) {
  Uses uses;
  collect(lowered.model, *lowered.model.plan, uses);
  const holotensor::Encoder encoder(encoding.encoder);
  std::vector<holotensor::EncodedTensor> encoded;
  std::set<std::string> names;
  for (size_t i = 0; i < lowered.constants.size(); ++i) {
    const Tensor& tensor = lowered.constants[i];
    const auto index = static_cast<int32_t>(i);
    if (!is_weight(tensor, index, uses, encoding.plain_below)) continue;
    std::string name =
        uses.names.contains(index) ? uses.names[index] : fmt::format("constant {}", i);
    while (!names.insert(name).second) name += fmt::format(" ({})", i);
    HOLOGRAM_TRY(auto fragments, encoder.encode({name,
                                                 tensor.dtype,
                                                 {tensor.dims.begin(), tensor.dims.rank()},
                                                 {tensor.data, tensor.bytes()}}));
    lowered.model.constants[i]->tensor = static_cast<int32_t>(encoded.size());
    encoded.push_back(std::move(fragments));
  }
  if (encoded.empty()) return EncodedWeights{};
  HOLOGRAM_TRY(auto file, holotensor::write_to_memory(std::move(encoded)));
  HOLOGRAM_TRY(const auto header, holotensor::parse_header(file));
  return EncodedWeights{std::move(file), holotensor::kFileHeaderSize + header.directory_stored};
}

}  // namespace hologram::compiler
