#include "compare.h"

#include <cmath>
#include <cstring>
#include <functional>

namespace hologram::conformance {
namespace {

using kernels::Tensor;
using kernels::Value;

// Elements as doubles; empty for types that are compared bit by bit.
std::function<double(int64_t)> reader(const Tensor& t) {
  switch (t.dtype) {
    case DType::f16:
      return [p = t.as<uint16_t>()](int64_t i) { return f16_to_f32(p[i]); };
    case DType::bf16:
      return [p = t.as<uint16_t>()](int64_t i) { return bf16_to_f32(p[i]); };
    case DType::f32:
    case DType::complex64:
      return [p = t.as<float>()](int64_t i) { return p[i]; };
    case DType::f64:
    case DType::complex128:
      return [p = t.as<double>()](int64_t i) { return p[i]; };
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
      return [p = t.as<uint8_t>(), d = t.dtype](int64_t i) { return small_float_to_f32(d, p[i]); };
    default:
      return {};
  }
}

std::string show(const Tensor& t, int64_t i) {
  switch (t.dtype) {
    case DType::i8:
      return std::to_string(t.as<int8_t>()[i]);
    case DType::u8:
    case DType::boolean:
      return std::to_string(t.as<uint8_t>()[i]);
    case DType::i32:
      return std::to_string(t.as<int32_t>()[i]);
    case DType::i64:
      return std::to_string(t.as<int64_t>()[i]);
    default:
      return "(bits)";
  }
}

Status compare_tensors(const Tensor& a, const Tensor& e, const Tolerance& tolerance) {
  if (a.dtype != e.dtype)
    return fail(ErrorCode::type_mismatch, "type {} where {} is expected", name_of(a.dtype),
                name_of(e.dtype));
  if (!(a.dims == e.dims))
    return fail(ErrorCode::shape_mismatch, "shape {} where {} is expected", a.dims.to_string(),
                e.dims.to_string());
  if (a.dtype == DType::string) {
    for (int64_t i = 0; i < a.count(); ++i)
      if (a.strings()[i] != e.strings()[i])
        return fail(ErrorCode::trap, "element {}: '{}' where '{}' is expected", i, a.strings()[i],
                    e.strings()[i]);
    return {};
  }
  if (auto x = reader(a)) {
    const auto y = reader(e);
    const int64_t count =
        a.count() * (a.dtype == DType::complex64 || a.dtype == DType::complex128 ? 2 : 1);
    int64_t wrong = 0, where = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double p = x(i), q = y(i);
      const bool same =
          p == q || (std::isnan(p) && std::isnan(q)) ||
          (std::isfinite(p) && std::isfinite(q) &&
           std::fabs(p - q) <= tolerance.absolute + tolerance.relative * std::fabs(q));
      if (!same && wrong++ == 0) where = i;
    }
    if (wrong > 0)
      return fail(ErrorCode::trap, "{} of {} elements differ, first {}: {} where {} is expected",
                  wrong, count, where, x(where), y(where));
    return {};
  }
  if (a.bytes() == 0 || std::memcmp(a.data, e.data, a.bytes()) == 0) return {};
  const size_t size = size_of(a.dtype);
  int64_t wrong = 0, where = 0;
  for (int64_t i = 0; size > 0 && i < a.count(); ++i)
    if (std::memcmp(a.data + i * size, e.data + i * size, size) != 0 && wrong++ == 0) where = i;
  return fail(ErrorCode::trap, "{} of {} elements differ, first {}: {} where {} is expected", wrong,
              a.count(), where, show(a, where), show(e, where));
}

}  // namespace

Status compare(const Value& actual, const Value& expected, const Tolerance& tolerance) {
  if (actual.kind != expected.kind)
    return fail(ErrorCode::type_mismatch,
                "a tensor, sequence or nothing where another of these is expected");
  if (actual.kind == Value::Kind::none) return {};
  if (actual.is_tensor()) return compare_tensors(actual.tensor, expected.tensor, tolerance);
  if (actual.sequence->size() != expected.sequence->size())
    return fail(ErrorCode::shape_mismatch, "a sequence of {} where {} are expected",
                actual.sequence->size(), expected.sequence->size());
  for (size_t i = 0; i < actual.sequence->size(); ++i)
    HOLOGRAM_CHECK(in_context(compare((*actual.sequence)[i], (*expected.sequence)[i], tolerance),
                              [&] { return "element " + std::to_string(i); }));
  return {};
}

}  // namespace hologram::conformance
