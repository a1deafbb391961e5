#include "tests/hostile/hostile_plan.h"

#include <cmath>
#include <cstring>

#include "archive/archive.h"
#include "support/aligned.h"

namespace hologram::testing {

using graph::Operator;
using kernels::Attribute;
using kernels::Dims;
using kernels::Tensor;
using kernels::Value;

namespace {

std::unique_ptr<archive::ValueT> value_of(archive::ModelT& model, const Operand& operand,
                                          archive::Storage storage) {
  auto value = std::make_unique<archive::ValueT>();
  value->storage = storage;
  value->type = static_cast<uint32_t>(model.types.size());
  model.types.push_back(std::make_unique<archive::TypeT>());
  archive::TypeT* type = model.types.back().get();
  if (operand.form == "seq" || operand.form == "opt") {
    type->kind = operand.form == "seq" ? 2 : 3;
    type->element = std::make_unique<archive::TypeT>();
    type = type->element.get();
  }
  type->kind = 1;
  type->dtype = static_cast<uint8_t>(operand.dtype);
  return value;
}

}  // namespace

Result<runtime::Session> open(const OneStep& from) {
  archive::ModelT model;
  std::vector<std::span<const std::byte>> constants;
  auto step = std::make_unique<archive::StepT>();
  model.plan = std::make_unique<archive::PlanT>();
  step->kernel = from.kernel;
  const auto add = [&](const Operand& operand, archive::Storage storage) {
    model.plan->values.push_back(value_of(model, operand, storage));
    return static_cast<uint32_t>(model.plan->values.size() - 1);
  };
  for (const Operand& input : from.inputs) {
    step->inputs.push_back(input.form == "-" ? 0xffffffff : add(input, archive::Storage::input));
    if (input.form != "-") model.plan->inputs.push_back(step->inputs.back());
  }
  for (const Operand& output : from.outputs) {
    step->outputs.push_back(add(output, archive::Storage::pool));
    model.plan->outputs.push_back(step->outputs.back());
  }
  for (const Attribute& a : from.attributes) {
    auto to = std::make_unique<archive::AttributeT>();
    to->name = a.name;
    to->kind = static_cast<uint8_t>(a.kind);
    to->integer = a.integer;
    to->number = a.number;
    to->text = a.text;
    to->integers = a.integers;
    to->numbers = a.numbers;
    to->texts = a.texts;
    if (a.kind == Attribute::Kind::tensor) {
      to->constant = static_cast<int32_t>(model.constants.size());
      auto constant = std::make_unique<archive::ConstantT>();
      constant->dtype = static_cast<uint8_t>(a.tensor.dtype);
      constant->dims.assign(a.tensor.dims.begin(), a.tensor.dims.end());
      if (a.tensor.dtype == DType::string)
        for (const std::string& s : a.tensor.strings()) constant->strings.push_back(s);
      constants.push_back(a.tensor.dtype == DType::string
                              ? std::span<const std::byte>()
                              : std::span<const std::byte>(a.tensor.data, a.tensor.bytes()));
      model.constants.push_back(std::move(constant));
    }
    step->attributes.push_back(std::move(to));
  }
  model.plan->steps.push_back(std::move(step));
  HOLOGRAM_TRY(const auto bytes, archive::write(model, constants));
  HOLOGRAM_TRY(AlignedBytes memory, AlignedBytes::allocate(bytes.size()));
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  auto owner = std::make_shared<AlignedBytes>(std::move(memory));
  HOLOGRAM_TRY(archive::Archive archive,
               archive::Archive::open({owner->data(), bytes.size()}, owner));
  return runtime::Session::open(std::move(archive));
}

DType Draw::type(const Operator& entry, const std::string& variable) {
  if (const auto fixed = dtype_from_name(variable)) return *fixed;
  if (const auto found = bound_.find(variable); found != bound_.end()) return found->second;
  const auto constraint = entry.constraints.find(variable);
  while (true) {
    const auto dtype = dtype_from_code(static_cast<uint8_t>(below(64)));
    if (!dtype || (constraint != entry.constraints.end() && !constraint->second.has(*dtype)))
      continue;
    // The types that models use, mostly.
    const bool common = *dtype == DType::f32 || *dtype == DType::i64 || *dtype == DType::string;
    if (!common && chance(50)) continue;
    return bound_[variable] = *dtype;
  }
}

OneStep Draw::step(const Operator& entry, bool with_attributes) {
  bound_.clear();
  OneStep step{entry.kernel, {}, {}, {}};
  const auto draw = [&](const Operator::Formal& formal) {
    std::string inner = formal.type, form;
    if (inner.starts_with("seq(") || inner.starts_with("opt(")) {
      form = inner.substr(0, 3);
      inner = inner.substr(4, inner.size() - 5);
    }
    return Operand{form, type(entry, inner)};
  };
  for (const Operator::Formal& formal : entry.inputs) {
    const bool left_out = formal.optional && chance(30);
    const int64_t count = formal.variadic ? below(4) + !formal.optional : 1;
    if (left_out && formal.variadic) break;
    for (int64_t i = 0; i < count; ++i)
      step.inputs.push_back(left_out ? Operand{"-"} : draw(formal));
  }
  while (!step.inputs.empty() && step.inputs.back().form == "-" && chance(50))
    step.inputs.pop_back();
  for (const Operator::Formal& formal : entry.outputs) {
    if (formal.optional && chance(40)) break;
    const int64_t count = formal.variadic ? 1 + below(3) : 1;
    for (int64_t i = 0; i < count; ++i) step.outputs.push_back(draw(formal));
  }
  if (with_attributes)
    for (const auto& [name, kind] : entry.attributes)
      if (kind != 'g' && chance(60)) step.attributes.push_back(attribute(name, kind));
  return step;
}

int64_t Draw::integer() {
  // What sums, products, negations and casts to narrower types overflow with.
  static constexpr int64_t kNasty[] = {INT64_MAX,           INT64_MIN,
                                       INT64_MAX - 1,       INT64_MIN + 1,
                                       int64_t{1} << 62,    int64_t{1} << 48,
                                       int64_t{1} << 40,    int64_t{1} << 32,
                                       int64_t{1} << 31,    (int64_t{1} << 31) - 1,
                                       int64_t{1} << 30,    int64_t{1} << 28,
                                       int64_t{1} << 20,    65536,
                                       -(int64_t{1} << 31), -(int64_t{1} << 40)};
  if (chance(4)) return kNasty[below(std::size(kNasty))];
  if (chance(2)) return int64_t{1} << below(62);
  return below(100) < 60 ? below(4) : below(12) - 4;
}
double Draw::number() {
  static constexpr double kNasty[] = {NAN,    INFINITY, -INFINITY, 1e30, -1e300, 1e-300,
                                      0x1p31, 0x1p63,   -0x1p63,   1e10, -1e6,   -0.0};
  if (chance(10)) return kNasty[below(std::size(kNasty))];
  return static_cast<double>(below(17) - 6) / 4;
}
std::string Draw::text() {
  static const char* const kTexts[] = {"",
                                       "abc",
                                       "constant",
                                       "reflect",
                                       "edge",
                                       "wrap",
                                       "linear",
                                       "nearest",
                                       "cubic",
                                       "bilinear",
                                       "zeros",
                                       "border",
                                       "add",
                                       "mul",
                                       "max",
                                       "min",
                                       "none",
                                       "mean",
                                       "sum",
                                       "VALID",
                                       "SAME_UPPER",
                                       "SAME_LOWER",
                                       "NOTSET",
                                       "forward",
                                       "reverse",
                                       "bidirectional",
                                       "Relu",
                                       "Tanh",
                                       "Sigmoid",
                                       "DCR",
                                       "CRD",
                                       "ij,jk->ik",
                                       "i->",
                                       "...ij->...",
                                       "LOWER",
                                       "UPPER",
                                       "RGB",
                                       "Grayscale",
                                       "TF",
                                       "TFIDF",
                                       "IDF",
                                       "SOFTMAX",
                                       "LOGISTIC",
                                       "PROBIT",
                                       "RBF",
                                       "POLY",
                                       "LEAF",
                                       "BRANCH_LEQ",
                                       "BRANCH_EQ",
                                       "SUM",
                                       "AVERAGE",
                                       "[a-z]+",
                                       "average",
                                       "relu",
                                       "gelu",
                                       "tanh",
                                       "left",
                                       "L1",
                                       "L2",
                                       "MAX",
                                       "half_pixel",
                                       "asymmetric",
                                       "floor",
                                       "round_prefer_floor",
                                       "tf_crop_and_resize",
                                       "default",
                                       "circular",
                                       "output_half_pixel",
                                       "avg",
                                       "stretch",
                                       "not_larger",
                                       "silu",
                                       "swish",
                                       "clip",
                                       "leaky_relu",
                                       "sigmoid",
                                       "hard_swish",
                                       "erf"};
  return kTexts[below(std::size(kTexts))];
}

Attribute Draw::attribute(const std::string& name, char kind) {
  Attribute a{.name = name};
  const int64_t length = chance(70) ? below(5) : below(13);
  switch (kind) {
    case 'i':
      a.kind = Attribute::Kind::integer;
      a.integer = integer();
      break;
    case 'f':
      a.kind = Attribute::Kind::number;
      a.number = number();
      break;
    case 's':
      a.kind = Attribute::Kind::text;
      a.text = text();
      break;
    case 'I':
      a.kind = Attribute::Kind::integers;
      for (int64_t i = 0; i < length; ++i) a.integers.push_back(integer());
      break;
    case 'F':
      a.kind = Attribute::Kind::numbers;
      for (int64_t i = 0; i < length; ++i) a.numbers.push_back(static_cast<float>(number()));
      break;
    case 'S':
      a.kind = Attribute::Kind::texts;
      for (int64_t i = 0; i < length; ++i) a.texts.push_back(text());
      break;
    default: {
      const DType types[] = {DType::f32, DType::i64, DType::string, DType::f64, DType::u8};
      a.kind = Attribute::Kind::tensor;
      a.tensor = tensor(types[below(5)], chance(70) ? Dims{below(5)} : dims());
    }
  }
  return a;
}

Dims Draw::dims() {
  Dims result;
  const int64_t rank = chance(80) ? 1 + below(4) : below(7);
  for (int64_t i = 0; i < rank; ++i) result.push_back(chance(90) ? 1 + below(4) : below(20));
  // No elements, and all the same dimensions that nobody can walk through.
  if (rank > 1 && chance(4)) {
    const int64_t empty = below(rank), large = below(rank);
    result[large] = int64_t{1} << below(chance(50) ? 27 : 21);
    result[empty] = 0;
    if (!result.are_possible()) result[large] = 1 << 8;
  }
  return result;
}

Tensor Draw::tensor(DType dtype, Dims dims) {
  // Every element is drawn; and an axis may have been put beside a large one and a 0.
  while (dims.count() > 1 << 20 || !dims.are_possible()) *std::ranges::max_element(dims) = 1;
  Tensor result = *Tensor::allocate(dtype, dims);
  const int64_t count = result.count();
  if (dtype == DType::string) {
    for (std::string& s : result.strings()) s = text();
    return result;
  }
  if (result.bytes() > 0) std::memset(result.data, 0, result.bytes());
  for (int64_t i = 0; i < count; ++i) {
    switch (dtype) {
      case DType::f32:
        result.as<float>()[i] = static_cast<float>(number());
        break;
      case DType::f64:
        result.as<double>()[i] = number();
        break;
      case DType::i64:
        result.as<int64_t>()[i] = integer();
        break;
      case DType::i32:
        result.as<int32_t>()[i] = static_cast<int32_t>(integer());
        break;
      case DType::boolean:
        result.as<bool>()[i] = chance(50);
        break;
      default:
        break;
    }
  }
  if (dtype != DType::boolean &&
      !(dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i64 || dtype == DType::i32))
    for (uint64_t i = 0; i < result.bytes(); ++i)
      result.data[i] = static_cast<std::byte>(chance(50) ? below(4) : below(256));
  return result;
}

std::vector<Value> Draw::values(const OneStep& step) {
  const Dims common = dims();
  const auto shape = [&]() -> Dims {
    if (chance(50)) return common;
    Dims other = common;
    if (other.rank() > 0 && chance(50)) {
      other[below(static_cast<int64_t>(other.rank()))] = 1 + below(3);
      return other.count() <= 1 << 20 ? other : common;  // it may have been the one that was 0
    }
    return chance(40) ? Dims{below(6)} : dims();
  };
  std::vector<Value> values;
  for (const Operand& operand : step.inputs) {
    if (operand.form == "-") continue;
    if (operand.form == "opt" && chance(30)) {
      values.emplace_back();
    } else if (operand.form == "seq") {
      std::vector<Value> elements;
      for (int64_t i = below(4); i > 0; --i) elements.emplace_back(tensor(operand.dtype, shape()));
      values.emplace_back(std::move(elements));
    } else {
      values.emplace_back(tensor(operand.dtype, shape()));
    }
  }
  return values;
}

}  // namespace hologram::testing
