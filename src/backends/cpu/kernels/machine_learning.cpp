// Kernels of the domain ai.onnx.ml on labels and categories; and the list of all of them.
#include "backends/cpu/kernels/machine_learning.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {
namespace {

// keys_* or values_*: whichever is there, as one tensor.
Tensor listed(const Attributes& a, const std::string& kind) {
  if (const Tensor* tensor = a.tensor(kind + "_tensor")) return *tensor;
  const auto view = [](DType type, auto list) {
    Tensor tensor{type, {static_cast<int64_t>(list.size())}};
    tensor.data =
        reinterpret_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(list.data())));
    return tensor;
  };
  if (a.has(kind + "_strings")) return view(DType::string, a.texts(kind + "_strings"));
  if (a.has(kind + "_int64s")) return view(DType::i64, a.integers(kind + "_int64s"));
  return view(DType::f32, a.numbers(kind + "_floats"));
}

// What an unknown key becomes; a number is put into `memory`.
Result<Tensor> default_label(const Attributes& a, DType type, int64_t& memory) {
  if (const Tensor* tensor = a.tensor("default_tensor")) {
    if (tensor->dtype != type || tensor->count() != 1)
      return fail(ErrorCode::type_mismatch, "default_tensor must be one {}", name_of(type));
    return *tensor;
  }
  static const std::string kUnused = "_Unused";
  Tensor label{type, {}, reinterpret_cast<std::byte*>(&memory)};
  const int64_t integer = a.integer("default_int64", -1);
  const double number = a.number("default_float", -0.0);
  const Attribute* given = nullptr;
  switch (type) {
    case DType::string:
      given = a.find("default_string");
      label.data =
          reinterpret_cast<std::byte*>(const_cast<std::string*>(given ? &given->text : &kUnused));
      return label;
    case DType::i64:
      *label.as<int64_t>() = integer;
      return label;
    case DType::i32:
      *label.as<int32_t>() = static_cast<int32_t>(integer);
      return label;
    case DType::i16:
      *label.as<int16_t>() = static_cast<int16_t>(integer);
      return label;
    case DType::f32:
      *label.as<float>() = static_cast<float>(number);
      return label;
    case DType::f64:
      *label.as<double>() = number;
      return label;
    default:
      return fail(ErrorCode::unsupported,
                  "values of type {}; supported: string, i64, i32, i16, f32, f64", name_of(type));
  }
}

// A number as a key: all NaN are one, and so are the two zeros.
uint64_t key_of(const Tensor& of, int64_t i) {
  auto real = [](double x) {
    return std::isnan(x) ? ~uint64_t{0} : x == 0 ? 0 : std::bit_cast<uint64_t>(x);
  };
  switch (of.dtype) {
    case DType::f32:
      return real(of.as<float>()[i]);
    case DType::f64:
      return real(of.as<double>()[i]);
    case DType::i32:
      return static_cast<uint64_t>(of.as<int32_t>()[i]);
    case DType::i16:
      return static_cast<uint64_t>(of.as<int16_t>()[i]);
    default:
      return of.as<uint64_t>()[i];
  }
}

Status label_encoder(KernelContext& c) {
  const Tensor& in = c.input(0);
  const Tensor keys = listed(c.attributes(), "keys"), values = listed(c.attributes(), "values");
  int64_t memory = 0;
  HOLOGRAM_TRY(const Tensor fallback, default_label(c.attributes(), values.dtype, memory));
  if (keys.dtype != in.dtype || values.dtype != c.output_type(0))
    return fail(ErrorCode::type_mismatch, "keys of {} and values of {} for {} to {}",
                name_of(keys.dtype), name_of(values.dtype), name_of(in.dtype),
                name_of(c.output_type(0)));
  if (keys.count() != values.count())
    return fail(ErrorCode::invalid_argument, "{} keys and {} values", keys.count(), values.count());
  Map<std::string_view, int64_t> texts;
  Map<uint64_t, int64_t> numbers;
  for (int64_t i = 0; i < keys.count(); ++i) {
    if (in.dtype == DType::string)
      texts.try_emplace(keys.as<std::string>()[i], i);
    else
      numbers.try_emplace(key_of(keys, i), i);
  }
  auto place = [&](int64_t i) -> int64_t {
    if (in.dtype == DType::string) {
      auto found = texts.find(in.as<std::string>()[i]);
      return found == texts.end() ? -1 : found->second;
    }
    auto found = numbers.find(key_of(in, i));
    return found == numbers.end() ? -1 : found->second;
  };
  HOLOGRAM_TRY(Tensor out, c.output(0, in.dims));
  return dispatch_size(out.dtype, [&]<typename T>() -> Status {
    for (int64_t i = 0; i < in.count(); ++i) {
      const int64_t at = place(i);
      out.as<T>()[i] = at < 0 ? *fallback.as<T>() : values.as<T>()[at];
    }
    return {};
  });
}

// One place more: 1 where the element is the category of that place. Numbers become integers first.
Status one_hot_encoder(KernelContext& c) {
  const Tensor& in = c.input(0);
  const auto texts = c.attributes().texts("cats_strings");
  const auto integers = c.integers("cats_int64s");
  const bool strings = in.dtype == DType::string;
  const auto count = static_cast<int64_t>(strings ? texts.size() : integers.size());
  if (count == 0)
    return fail(ErrorCode::invalid_argument, "no {} for an input of type {}",
                strings ? "cats_strings" : "cats_int64s", name_of(in.dtype));
  if (in.dims.rank() == kMaxRank)
    return fail(ErrorCode::unsupported, "an input of rank {}; supported: less", kMaxRank);
  Dims dims = in.dims;
  dims.push_back(count);
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  std::fill_n(out.as<float>(), out.count(), 0.0f);
  auto mark = [&](int64_t i, bool found, int64_t place) -> Status {
    if (found) out.as<float>()[i * count + place] = 1;
    if (found || c.integer("zeros", 1) != 0) return {};
    return fail(ErrorCode::out_of_range, "element {} is of no category, and zeros=0", i);
  };
  if (strings) {
    for (int64_t i = 0; i < in.count(); ++i) {
      const auto at = std::ranges::find(texts, in.strings()[static_cast<size_t>(i)]);
      HOLOGRAM_CHECK(mark(i, at != texts.end(), at - texts.begin()));
    }
    return {};
  }
  return dispatch_number(in.dtype, [&]<typename T>() -> Status {
    for (int64_t i = 0; i < in.count(); ++i) {
      const T value = in.as<T>()[i];
      bool whole = true;
      if constexpr (std::is_floating_point_v<T>) whole = std::fabs(value) < T(0x1p63);
      const auto at =
          whole ? std::ranges::find(integers, static_cast<int64_t>(value)) : integers.end();
      HOLOGRAM_CHECK(mark(i, at != integers.end(), at - integers.begin()));
    }
    return {};
  });
}

constexpr Kernel kKernels[] = {
    {"LabelEncoder", label_encoder},
    {"LinearClassifier", linear_classifier},
    {"LinearRegressor", linear_regressor},
    {"OneHotEncoder", one_hot_encoder},
    {"SVMClassifier", svm_classifier},
    {"SVMRegressor", svm_regressor},
    {"TreeEnsemble", tree_ensemble, true},
    {"TreeEnsembleClassifier", tree_ensemble_classifier},
    {"TreeEnsembleRegressor", tree_ensemble_regressor},
};

}  // namespace

std::span<const Kernel> machine_learning_kernels() { return kKernels; }

}  // namespace hologram::kernels
