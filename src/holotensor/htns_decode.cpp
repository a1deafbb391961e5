#include <kissfft/kiss_fft.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>

#include "holotensor/htns.h"

namespace hologram::holotensor {
namespace {

// The items that fragment i of F holds: i, i + F, ...
uint64_t items_of(uint64_t count, uint64_t fragment, uint64_t fragments) {
  return fragment < count ? (count - fragment - 1) / fragments + 1 : 0;
}

// The inverse of the orthonormal DCT-II of any length, by one complex FFT of the same length.
Status inverse_dct(std::span<float> values) {
  const size_t n = values.size();
  kiss_fft_cfg plan = kiss_fft_alloc(static_cast<int>(n), 1, nullptr, nullptr);
  if (!plan) return fail(ErrorCode::resource_exhausted, "no memory for a DCT of {} points", n);
  std::vector<kiss_fft_cpx> spectrum(n), signal(n);
  const double scale = std::sqrt(2.0 / static_cast<double>(n));
  const auto coefficient = [&](size_t k) {
    return k == 0 ? values[0] * std::numbers::sqrt2 : k == n ? 0.0 : double{values[k]};
  };
  for (size_t k = 0; k < n; ++k) {
    const double angle = std::numbers::pi * static_cast<double>(k) / (2.0 * static_cast<double>(n));
    const double real = coefficient(k), imaginary = -coefficient(n - k);
    const double c = std::cos(angle) * scale / 2, s = std::sin(angle) * scale / 2;
    spectrum[k].r = static_cast<float>(real * c - imaginary * s);
    spectrum[k].i = static_cast<float>(real * s + imaginary * c);
  }
  kiss_fft(plan, spectrum.data(), signal.data());
  kiss_fft_free(plan);
  for (size_t i = 0; i < n; ++i) values[i] = signal[i % 2 == 0 ? i / 2 : n - 1 - i / 2].r;
  return {};
}

using Payloads = std::vector<std::optional<std::vector<float>>>;  // by fragment

Status decode_spectral(const HtnsFile& file, const Payloads& payloads, std::span<float> out) {
  for (uint64_t f = 0; f < payloads.size(); ++f) {
    if (!payloads[f]) continue;
    if (payloads[f]->size() != items_of(out.size(), f, payloads.size()))
      return fail(ErrorCode::corrupt, "HTNS fragment {} holds {} coefficients of {}", f,
                  payloads[f]->size(), out.size());
    for (uint64_t i = 0; i < payloads[f]->size(); ++i)
      out[f + i * payloads.size()] = (*payloads[f])[i];
  }
  if (file.elements > INT32_MAX)
    return fail(ErrorCode::unsupported, "a DCT of {} points", file.elements);
  return inverse_dct(out);
}

Status decode_lowrank(const HtnsFile& file, const Payloads& payloads, std::span<float> out) {
  const uint64_t rows = file.shape.empty() ? 1 : static_cast<uint64_t>(file.shape[0]);
  const uint64_t columns = file.elements / rows;
  for (const auto& payload : payloads) {
    if (!payload) continue;
    const uint64_t size = 1 + rows + columns;
    if (payload->size() % size != 0)
      return fail(ErrorCode::corrupt, "{} values are no components of a {} x {} matrix",
                  payload->size(), rows, columns);
    for (uint64_t c = 0; c < payload->size(); c += size) {
      const float* component = payload->data() + c;
      const float *left = component + 1, *right = component + 1 + rows;
      for (uint64_t i = 0; i < rows; ++i)
        for (uint64_t j = 0; j < columns; ++j)
          out[i * columns + j] += component[0] * left[i] * right[j];
    }
  }
  return {};
}

// Least squares by conjugate gradients on the normal equations, from zero: with fewer products than
// elements, the shortest tensor that explains them.
Status decode_projection(const HtnsFile& file, const Payloads& payloads,
                         const HtnsProjectionRow& row_of, std::span<float> out) {
  if (!row_of)
    return fail(
        ErrorCode::unsupported,
        "an HTNS file of random projections: its matrix is not in the file and its generator "
        "is not recorded; give decode_htns() a function that makes its rows");
  struct Product {
    uint64_t row;
    double value;
  };
  std::vector<Product> products;
  for (uint64_t f = 0; f < payloads.size(); ++f)
    if (payloads[f])
      for (uint64_t i = 0; i < payloads[f]->size(); ++i)
        products.push_back({f + i * payloads.size(), (*payloads[f])[i]});
  const size_t n = out.size();
  std::vector<float> row(n);
  // A^T (weight of each row), with the weights given by the rows themselves or by the products.
  const auto gather = [&](const std::vector<double>& weights) {
    std::vector<double> sum(n);
    for (size_t p = 0; p < products.size(); ++p) {
      row_of(file.seed, products[p].row, row);
      for (size_t i = 0; i < n; ++i) sum[i] += weights[p] * row[i];
    }
    return sum;
  };
  const auto multiply = [&](const std::vector<double>& x) {
    std::vector<double> result(products.size());
    for (size_t p = 0; p < products.size(); ++p) {
      row_of(file.seed, products[p].row, row);
      for (size_t i = 0; i < n; ++i) result[p] += row[i] * x[i];
    }
    return result;
  };
  const auto dot = [](const std::vector<double>& a) {
    double sum = 0;
    for (const double value : a) sum += value * value;
    return sum;
  };
  std::vector<double> x(n), weights;
  for (const Product& product : products) weights.push_back(product.value);
  std::vector<double> residual = gather(weights), direction = residual;
  const double first = dot(residual);
  double squares = first;
  for (size_t step = 0; step < 2 * n && squares > 1e-24 * first; ++step) {
    const auto image = multiply(direction);
    const double length = dot(image);
    if (!(length > 0)) break;
    const double alpha = squares / length;
    const auto change = gather(image);
    for (size_t i = 0; i < n; ++i) {
      x[i] += alpha * direction[i];
      residual[i] -= alpha * change[i];
    }
    const double next = dot(residual);
    for (size_t i = 0; i < n; ++i) direction[i] = residual[i] + next / squares * direction[i];
    squares = next;
  }
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(x[i]);
  return {};
}

}  // namespace

Result<HtnsTensor> decode_htns(std::span<const std::byte> bytes,
                               const HtnsProjectionRow& projection_row) {
  HOLOGRAM_TRY(const HtnsFile file, parse_htns(bytes));
  if (file.flags & (kHtnsQuantized | kHtnsEssentialFirst))
    return fail(ErrorCode::unsupported,
                "an HTNS file with flags {:#x}: how it quantized or ordered its values is not "
                "recorded",
                file.flags);
  HtnsTensor tensor{.shape = file.shape};
  Payloads payloads(file.total_fragments);
  for (size_t entry = 0; entry < file.fragments.size(); ++entry) {
    const auto raw = read_htns_fragment(file, bytes, entry);
    if (!raw && raw.error().code() == ErrorCode::unsupported)
      return fail(Error(raw.error()), "HTNS");
    if (!raw || raw->size() % 4 != 0) {
      ++tensor.fragments_damaged;
      continue;
    }
    std::vector<float> values(raw->size() / 4);
    if (!values.empty()) std::memcpy(values.data(), raw->data(), raw->size());
    payloads[file.fragments[entry].index] = std::move(values);
    ++tensor.fragments_used;
  }
  if (tensor.fragments_used == 0 || tensor.fragments_used < file.min_fragments)
    return fail(ErrorCode::corrupt, "{} good fragments of {}; {} are needed", tensor.fragments_used,
                file.total_fragments, file.min_fragments);
  tensor.values.resize(file.elements);
  switch (file.encoding) {
    case HtnsEncoding::spectral:
      HOLOGRAM_CHECK(decode_spectral(file, payloads, tensor.values));
      break;
    case HtnsEncoding::projection:
      HOLOGRAM_CHECK(decode_projection(file, payloads, projection_row, tensor.values));
      break;
    case HtnsEncoding::lowrank:
      HOLOGRAM_CHECK(decode_lowrank(file, payloads, tensor.values));
      break;
  }
  return tensor;
}

}  // namespace hologram::holotensor
