#include "cli/tensor_output.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "support/file.h"
#include "support/npy.h"

namespace hologram::cli {
namespace {

using kernels::Tensor;
using kernels::Value;

// Any numeric element as a double, for showing.
double element(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype) {
    case DType::boolean:
    case DType::u8:
      return tensor.as<uint8_t>()[i];
    case DType::i8:
      return tensor.as<int8_t>()[i];
    case DType::i16:
      return tensor.as<int16_t>()[i];
    case DType::i32:
      return tensor.as<int32_t>()[i];
    case DType::i64:
      return static_cast<double>(tensor.as<int64_t>()[i]);
    case DType::u16:
      return tensor.as<uint16_t>()[i];
    case DType::u32:
      return tensor.as<uint32_t>()[i];
    case DType::u64:
      return static_cast<double>(tensor.as<uint64_t>()[i]);
    case DType::f16:
      return f16_to_f32(tensor.as<uint16_t>()[i]);
    case DType::bf16:
      return bf16_to_f32(tensor.as<uint16_t>()[i]);
    case DType::f32:
      return tensor.as<float>()[i];
    case DType::f64:
      return tensor.as<double>()[i];
    default:
      return NAN;
  }
}

std::string shape_text(const Tensor& tensor) {
  return fmt::format("{} [{}]", name_of(tensor.dtype),
                     fmt::join(tensor.dims.begin(), tensor.dims.end(), ", "));
}

std::string summarise(const Tensor& tensor) {
  constexpr int64_t kShown = 6;
  std::string text = shape_text(tensor);
  const int64_t count = tensor.count();
  if (tensor.dtype == DType::string) {
    for (int64_t i = 0; i < std::min(count, kShown); ++i)
      text += fmt::format(" \"{}\"", tensor.strings()[static_cast<size_t>(i)]);
    return text + (count > kShown ? " ..." : "");
  }
  if (count == 0 || !is_compute(tensor.dtype)) return text;
  double low = INFINITY, high = -INFINITY, sum = 0;
  int64_t bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = element(tensor, i);
    if (!std::isfinite(value)) {
      ++bad;
      continue;
    }
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  if (count > 1 && bad < count)
    text += fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}", low, high,
                        sum / static_cast<double>(count - bad));
  if (bad > 0) text += fmt::format("  ({} not finite)", bad);
  text += "  [";
  for (int64_t i = 0; i < std::min(count, kShown); ++i)
    text += fmt::format("{}{:.6g}", i ? " " : "", element(tensor, i));
  return text + (count > kShown ? " ...]" : "]");
}

std::string to_json(const Tensor& tensor) {
  std::string text =
      fmt::format("{{\"type\": \"{}\", \"shape\": [{}], \"data\": [", name_of(tensor.dtype),
                  fmt::join(tensor.dims.begin(), tensor.dims.end(), ", "));
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const double value = element(tensor, i);
    text += i ? ", " : "";
    text += std::isfinite(value) ? fmt::format("{}", value)
            : std::isnan(value)  ? "\"nan\""
            : value > 0          ? "\"inf\""
                                 : "\"-inf\"";
  }
  return text + "]}\n";
}

}  // namespace

std::string summarise(const Value& value) {
  if (value.is_tensor()) return summarise(value.tensor);
  if (!value.is_sequence()) return "nothing";
  std::string text = fmt::format("sequence of {}", value.sequence->size());
  for (const Value& item : *value.sequence) text += "\n    " + summarise(item);
  return text;
}

Result<std::string> top(const Value& value, int count) {
  if (!value.is_tensor() || value.tensor.dims.size() == 0 || value.tensor.count() == 0 ||
      !is_compute(value.tensor.dtype))
    return fail(ErrorCode::invalid_argument, "--top needs a numeric tensor; the output is {}",
                summarise(value));
  const int64_t row = value.tensor.dims.back();
  std::vector<int64_t> order(static_cast<size_t>(row));
  std::iota(order.begin(), order.end(), 0);
  const auto shown = static_cast<size_t>(std::min<int64_t>(count, row));
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(shown), order.end(),
                    [&](int64_t a, int64_t b) {
                      const double x = element(value.tensor, a), y = element(value.tensor, b);
                      return x > y || (x == y && a < b);
                    });
  std::string text;
  for (size_t i = 0; i < shown; ++i)
    text += fmt::format("  {:>6}  {:.6g}\n", order[i], element(value.tensor, order[i]));
  return text;
}

Status write_output(const std::filesystem::path& path, const Value& value) {
  if (!value.is_tensor() || value.tensor.dtype == DType::string)
    return fail(ErrorCode::unsupported,
                "only tensors of numbers are written to files; this output is {}",
                summarise(value));
  const Tensor& tensor = value.tensor;
  const std::span<const std::byte> bytes(tensor.data, tensor.bytes());
  if (path.extension() == ".json") return write_file(path, std::string_view(to_json(tensor)));
  if (path.extension() != ".npy") return write_file(path, bytes);
  const std::vector<int64_t> shape(tensor.dims.begin(), tensor.dims.end());
  HOLOGRAM_TRY(const std::vector<std::byte> file, format_npy(tensor.dtype, shape, bytes));
  return write_file(path, file);
}

}  // namespace hologram::cli
