#include "holotensor/refine/block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace hologram::holotensor::refine {

TensorModel::TensorModel() {
  for (auto& row : centroid)
    for (float& entry : row) entry = 0.5f;
}

unsigned TensorModel::depth(unsigned scale_class, unsigned layers) const {
  if (scale_class == kEmptyClass || layers <= scale_class) return 0;
  return std::min(layers - scale_class, window(scale_class).planes);
}

void Block::reset(const TensorModel& model, unsigned elements) {
  model_ = &model;
  elements_ = elements;
  groups_ = (elements + kGroup - 1) / kGroup;
  words_ = groups_ * kGroupWords;
  // A cache line more than a power of two: equal words of all planes would share one set of the
  // cache.
  stride_ = words_ + size_t{8};
  layers_ = 0;
  masked_ = has_zeros_ = false;
  classes_.assign(groups_, kEmptyClass);
  states_.clear();
  exceptions_.clear();
  planes_.resize(kMaxPlanes * stride_);
  significant_.resize((kExtraPlanes + 1) * stride_);
  negative_.resize(words_);
  live_.resize(words_);
  zeros_.resize(words_);
  excepted_.assign(words_, 0);
  // Four contexts as large as their class each, the signs and the zeros, and the slack of every
  // stream.
  scratch_.resize(size_t{6} * words_ + (kMaxClass + 2) * 5 * 3);
  tail_bits_ = low_bytes_ = {};
}

unsigned Block::group_elements(unsigned group) const {
  return std::min(kGroup, elements_ - group * kGroup);
}

void Block::set_classes(std::span<const uint8_t> classes) {
  classes_.assign(classes.begin(), classes.end());
  for (unsigned g = 0; g < groups_; ++g) {
    const uint8_t c = classes_[g];
    if (c == kEmptyClass) continue;
    if (states_.size() <= c) states_.resize(c + size_t{1});
    ClassState& state = states_[c];
    const uint32_t begin = g * kGroupWords;
    if (!state.ranges.empty() && state.ranges.back().end == begin)
      state.ranges.back().end = begin + kGroupWords;
    else
      state.ranges.push_back({begin, begin + kGroupWords});
    state.words += kGroupWords;
  }
}

// Elements past the end and, where they are marked, zeros take no part.
void Block::set_live(bool has_zeros) {
  has_zeros_ = has_zeros;
  masked_ = has_zeros || elements_ % kGroup != 0;
  if (masked_) {
    for (unsigned w = 0; w < words_; ++w) {
      const uint64_t begin = uint64_t{w} * 64;
      const uint64_t valid = elements_ >= begin + 64 ? ~uint64_t{0}
                             : elements_ <= begin    ? 0
                                                     : (uint64_t{1} << (elements_ - begin)) - 1;
      live_[w] = has_zeros ? valid & ~zeros_[w] : valid;
    }
  }
  for (ClassState& state : states_) {
    state.live = 0;
    for (const Range range : state.ranges)
      state.live += masked_ ? bit_kernels().count(live_.data(), range.begin, range.end)
                            : uint64_t{64} * (range.end - range.begin);
  }
}

void Block::add_exception(Exception exception) {
  exceptions_.push_back(exception);
  excepted_[exception.position / 64] |= uint64_t{1} << exception.position % 64;
}

PlaneMasks Block::masks(unsigned plane) const {
  const unsigned s = model_->format.significant;
  return {.live = masked_ ? live_.data() : nullptr,
          .above1 = plane >= 1 && plane <= kExtraPlanes + 1 ? significant(plane - 1) : nullptr,
          .above2 = plane >= 2 && plane <= kExtraPlanes + 1 ? significant(plane - 2) : nullptr,
          .above3 = plane >= 3 && plane <= kExtraPlanes + 1 ? significant(plane - 3) : nullptr,
          .done = plane >= s ? significant(plane - s) : nullptr};
}

void Block::update_significance(ClassState& state, unsigned i) {
  if (i > kExtraPlanes) return;
  const uint64_t* before = i > 0 ? significant(i - 1) : nullptr;
  uint64_t* now = significant_.data() + i * stride_;
  state.significant[i] = 0;
  for (const Range range : state.ranges)
    state.significant[i] += bit_kernels().accumulate(before, plane(i), range.begin, range.end, now);
}

void approximate_group(const TensorModel& model, unsigned scale_class, unsigned layers,
                       const uint32_t* magnitude, const uint64_t* negative, const uint64_t* live,
                       float* out) {
  const unsigned depth = model.depth(scale_class, layers);
  if (depth == 0) {
    std::fill(out, out + kGroup, model.format.offset);
    return;
  }
  approximate_carriers(model.format, model.window(scale_class), depth,
                       model.centroids(depth, model.window(scale_class).planes), magnitude,
                       negative, out);
  if (!live) return;
  for (unsigned w = 0; w < kGroupWords; ++w)
    for (uint64_t dead = ~live[w]; dead != 0; dead &= dead - 1)
      out[w * 64 + static_cast<unsigned>(std::countr_zero(dead))] = 0.0f;
}

int scale_of(const NumberFormat& format, const float* carriers, int reference) {
  GroupStatistics statistics = group_statistics(carriers);
  const float largest = std::bit_cast<float>(statistics.largest);
  if (statistics.largest == 0) {
    for (unsigned i = 0; i < kGroup; ++i)
      if (std::bit_cast<uint32_t>(carriers[i]) != 0) return -149;  // only zeros, some negative
    return kNoScale;
  }
  double squares = statistics.squares, count = statistics.nonzero;
  // Squares that over- or underflow, or are not numbers, are added up again with care.
  if (!(largest < 0x1p50f) || largest < 0x1p-50f) {
    squares = count = 0;
    for (unsigned i = 0; i < kGroup; ++i) {
      const double value = carriers[i];
      if (!std::isfinite(value) || value == 0) continue;
      squares += value * value;
      ++count;
    }
    if (count == 0) return 0;  // exceptions only
  }
  const double mean = squares / count;  // at least 2^-298
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(mean) >> 52) - 1023;
  int scale = exponent >> 1;
  // The deviation of 256 weights is known to 4%: 0.8 and 1.25 are five times that.
  const double relative = reference == kNoScale ? 0 : mean * power_of_two(-2 * reference);
  if (relative >= 0.64 && relative < 6.25) scale = reference;
  // Heavy tails: a larger scale until at most one element is an exception.
  while (scale < 124) {
    const double limit = power_of_two(scale + 3);
    if (largest < limit) break;
    unsigned above = 0;
    for (unsigned i = 0; i < kGroup; ++i)
      above += std::isfinite(carriers[i]) && std::abs(carriers[i]) >= limit;
    if (above <= 1) break;
    ++scale;
  }
  // Beyond these the planes would leave the range of the type.
  return format.integer ? std::clamp(scale, -2, 4) : std::clamp(scale, -149, 124);
}

}  // namespace hologram::holotensor::refine
