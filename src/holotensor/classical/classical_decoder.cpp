#include "holotensor/classical/classical_decoder.h"

#include <algorithm>
#include <cmath>

#include "holotensor/classical/exact_residual.h"
#include "holotensor/classical/integer_stream.h"
#include "holotensor/values.h"
#include "support/aligned.h"

namespace hologram::holotensor {
namespace {

class ClassicalDecoder final : public SchemeDecoder {
 public:
  ClassicalDecoder(const TensorInfo& info, std::unique_ptr<Synthesis> synthesis, bool exact,
                   int exponent, double step)
      : info_(info),
        synthesis_(std::move(synthesis)),
        exact_(exact),
        exponent_(exponent),
        step_(step),
        parts_(info.fragment_count + size_t{1}),
        residuals_(info.fragment_count) {}

  Status add(uint16_t index, SharedBytes payload) override {
    ByteReader in(payload.view);
    const auto essential_bytes = in.bytes(in.varint());
    const auto own_bytes = in.bytes(in.varint());
    if (!in.ok()) return fail(ErrorCode::corrupt, "the payload ends early");
    if (!exact_ && !in.done()) return fail(ErrorCode::corrupt, "the payload has bytes left over");
    AlignedBytes essential, own;
    const bool first = received_ == 0;
    if (first) HOLOGRAM_CHECK(read_part(info_.fragment_count, essential_bytes, essential));
    HOLOGRAM_CHECK(read_part(index, own_bytes, own));
    if (first) parts_[info_.fragment_count] = std::move(essential);
    parts_[index] = std::move(own);
    residuals_[index] = {in.rest(), std::move(payload.owner)};
    ++received_;
    return {};
  }

  uint16_t usable() const override { return received_; }

  Status reconstruct(DType type, std::span<std::byte> out, ThreadPool& pool) const override {
    const uint64_t count = info_.elements();
    HOLOGRAM_TRY(const AlignedBytes memory, AlignedBytes::allocate(count * sizeof(float)));
    const std::span<float> values = memory.as<float>();
    std::vector<Part> parts;
    for (const AlignedBytes& part : parts_) parts.push_back(part.as<int32_t>());
    HOLOGRAM_CHECK(synthesis_->synthesise(parts, step_, values, pool));
    unscale(values, exponent_, pool);
    if (!exact_ || received_ < info_.fragment_count) return from_f32(values, type, out);

    if (type == info_.dtype) return make_exact(values, out, pool);
    // What the exact elements convert to, and not what the estimate does.
    HOLOGRAM_TRY(const AlignedBytes own, AlignedBytes::allocate(info_.source_bytes()));
    HOLOGRAM_CHECK(make_exact(values, own.bytes(), pool));
    HOLOGRAM_CHECK(to_f32(info_.dtype, own.bytes(), values));
    return from_f32(values, type, out);
  }

 private:
  Status read_part(size_t part, std::span<const std::byte> bytes, AlignedBytes& into) const {
    const uint64_t count = synthesis_->part_size(part);
    if (bytes.size() < least_integer_bytes(count)) {
      return fail(ErrorCode::corrupt, "{} bytes cannot hold {} numbers", bytes.size(), count);
    }
    HOLOGRAM_TRY(into, AlignedBytes::allocate(count * sizeof(int32_t)));
    ByteReader in(bytes);
    HOLOGRAM_CHECK(decode_integers(in, into.as<int32_t>(), ThreadPool::shared()));
    return in.done() ? Status() : fail(ErrorCode::corrupt, "a part has bytes left over");
  }

  Status make_exact(std::span<const float> values, std::span<std::byte> out,
                    ThreadPool& pool) const {
    const size_t width = size_of(info_.dtype);
    for (size_t f = 0; f < residuals_.size(); ++f) {
      const ElementRange range = residual_range(values.size(), residuals_.size(), f);
      HOLOGRAM_CHECK(decode_residual(info_.dtype, residuals_[f].view,
                                     values.subspan(range.begin, range.size()),
                                     out.subspan(range.begin * width, range.size() * width), pool));
    }
    return {};
  }

  const TensorInfo& info_;
  std::unique_ptr<Synthesis> synthesis_;
  bool exact_;
  int exponent_;
  double step_;
  std::vector<AlignedBytes> parts_;  // int32_t; the last is the essential one
  std::vector<SharedBytes> residuals_;
  uint16_t received_ = 0;
};

}  // namespace

Result<std::unique_ptr<SchemeDecoder>> make_classical_decoder(const Transform& transform,
                                                              const TensorInfo& info) {
  ByteReader in(info.parameters);
  const auto version = in.get<uint8_t>();
  const auto exact = in.get<uint8_t>();
  const auto exponent = in.get<int16_t>();
  const auto step = in.get<double>();
  if (!in.ok() || version != kClassicalVersion || exact > 1 || std::abs(exponent) > 200 ||
      !(step > 0 && std::isfinite(step)) || !converts_to_f32(info.dtype)) {
    return fail(ErrorCode::corrupt, "tensor '{}' has impossible parameters for {}", info.name,
                name_of(info.scheme));
  }
  if (info.curve.back().exact != (exact == 1)) {
    return fail(ErrorCode::corrupt, "tensor '{}': parameters and curve disagree", info.name);
  }
  HOLOGRAM_TRY(auto synthesis,
               transform.restore(flatten(info.shape), info.fragment_count, info.seed, in));
  if (!in.done()) {
    return fail(ErrorCode::corrupt, "tensor '{}' has parameters left over", info.name);
  }
  return std::make_unique<ClassicalDecoder>(info, std::move(synthesis), exact == 1, exponent, step);
}

ElementRange residual_range(size_t elements, size_t fragments, size_t fragment) {
  const size_t share = (elements + fragments - 1) / fragments;
  return {std::min(elements, fragment * share), std::min(elements, (fragment + 1) * share)};
}

void unscale(std::span<float> values, int exponent, ThreadPool& pool) {
  const double factor = std::ldexp(1.0, exponent);  // a float could overflow before the product
  pool.parallel_for(values.size(), 1 << 14, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) values[i] = static_cast<float>(values[i] * factor);
  });
}

}  // namespace hologram::holotensor
