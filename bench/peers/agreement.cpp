#include "bench/peers/agreement.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hologram::peers {

Result<std::vector<kernels::Value>> to_values(const runtime::Session& session,
                                              std::span<const PeerTensor> inputs) {
  std::vector<kernels::Value> values;
  for (const auto& port : session.inputs()) {
    const auto found = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const PeerTensor& t) { return t.name == port.name; });
    if (found == inputs.end())
      return fail(ErrorCode::not_found, "the peer has no input '{}'", port.name);
    HOLOGRAM_TRY(kernels::Tensor tensor,
                 kernels::Tensor::allocate(found->type, kernels::Dims(found->shape)));
    if (!found->data.empty()) std::memcpy(tensor.data, found->data.data(), found->data.size());
    values.emplace_back(std::move(tensor));
  }
  return values;
}

namespace {

OutputError difference(const float* ours, const float* theirs, int64_t count) {
  double low = INFINITY, high = -INFINITY, most = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double x = ours[i], y = theirs[i];
    if (!std::isfinite(y)) {
      high = INFINITY;
      if (!(x == y || (std::isnan(x) && std::isnan(y)))) most = squares = INFINITY;
      continue;
    }
    low = std::min(low, y);
    high = std::max(high, y);
    most = std::isfinite(x) ? std::max(most, std::fabs(x - y)) : INFINITY;
    squares += (x - y) * (x - y);
  }
  const double range = high >= low ? high - low : 0, unit = range > 0 ? range : 1;
  return {most / unit, std::sqrt(squares / static_cast<double>(std::max<int64_t>(1, count))) / unit,
          range, std::isfinite(high) ? std::max(std::fabs(low), std::fabs(high)) : 0};
}

// Either side's tensor.
struct View {
  DType type;
  std::vector<int64_t> shape;
  const std::byte* data;
};

Result<OutputError> difference(const View& a, const PeerTensor& b) {
  if (a.type != b.type || a.shape != b.shape)
    return fail(ErrorCode::shape_mismatch, "output '{}' is {} [{}], the peer's is {} [{}]", b.name,
                name_of(a.type), fmt::join(a.shape, ", "), name_of(b.type),
                fmt::join(b.shape, ", "));
  if (a.type == DType::f32)
    return difference(reinterpret_cast<const float*>(a.data),
                      reinterpret_cast<const float*>(b.data.data()),
                      static_cast<int64_t>(b.data.size() / sizeof(float)));
  const bool equal = b.data.empty() || std::memcmp(a.data, b.data.data(), b.data.size()) == 0;
  return equal ? OutputError{} : OutputError{1, 1, 0, 0};
}

}  // namespace

Result<OutputError> difference(const kernels::Value& ours, const PeerTensor& theirs) {
  const kernels::Tensor& tensor = ours.tensor;
  return difference({tensor.dtype, {tensor.dims.begin(), tensor.dims.end()}, tensor.data}, theirs);
}

Result<OutputError> difference(const PeerTensor& a, const PeerTensor& b) {
  return difference({a.type, a.shape, a.data.data()}, b);
}

Result<OutputError> difference(std::span<const kernels::Value> ours,
                               std::span<const PeerTensor> theirs) {
  if (ours.size() != theirs.size())
    return fail(ErrorCode::shape_mismatch, "{} outputs, the peer has {}", ours.size(),
                theirs.size());
  OutputError worst;
  for (size_t i = 0; i < ours.size(); ++i) {
    HOLOGRAM_TRY(const OutputError error, difference(ours[i], theirs[i]));
    worst = {std::max(worst.max, error.max), std::max(worst.rms, error.rms),
             std::max(worst.range, error.range), std::max(worst.magnitude, error.magnitude)};
  }
  return worst;
}

}  // namespace hologram::peers
