#include "holotensor/classical/dct.h"

#include <kiss_fft.h>
#include <kiss_fftr.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>

namespace hologram::holotensor {
namespace {

struct FreeFft {
  void operator()(void* state) const { kiss_fft_free(state); }
};

size_t largest_smooth_up_to(size_t limit) {
  size_t best = 1;
  for (size_t fives = 1; fives <= limit; fives *= 5) {
    for (size_t threes = fives; threes <= limit; threes *= 3) {
      size_t twos = threes;
      while (twos * 2 <= limit) twos *= 2;
      best = std::max(best, twos);
    }
  }
  return best;
}

// One transform of one length: Makhoul's way, an FFT of the same length on reordered points.
// Not for two threads at once: KissFFT's state holds scratch.
class Dct {
 public:
  static std::unique_ptr<Dct> create(size_t length, DctDirection direction) {
    auto dct = std::unique_ptr<Dct>(new Dct(length, direction));
    const int inverse = direction == DctDirection::inverse;
    const int points = static_cast<int>(length);
    if (dct->real_) {
      dct->state_.reset(kiss_fftr_alloc(points, inverse, nullptr, nullptr));
    } else {
      dct->state_.reset(kiss_fft_alloc(points, inverse, nullptr, nullptr));
    }
    return dct->state_ ? std::move(dct) : nullptr;
  }

  void transform(float* values) {
    if (direction_ == DctDirection::forward) {
      forward(values);
    } else {
      inverse(values);
    }
  }

 private:
  Dct(size_t length, DctDirection direction)
      : length_(length),
        direction_(direction),
        real_(length % 2 == 0),
        points_(length),
        complex_points_(real_ ? 0 : length),
        spectrum_(length + 1),
        rotation_(length / 2 + 1) {
    const double n = static_cast<double>(length);
    first_scale_ = static_cast<float>(std::sqrt(1 / n));
    // The inverse FFT sums the spectrum and its mirror, so both directions scale alike.
    const double scale = direction == DctDirection::forward ? std::sqrt(2 / n) : std::sqrt(0.5 / n);
    for (size_t k = 0; k < rotation_.size(); ++k) {
      const double angle = std::numbers::pi * static_cast<double>(k) / (2 * n);
      rotation_[k] = {static_cast<float>(scale * std::cos(angle)),
                      static_cast<float>(scale * std::sin(angle))};
    }
  }

  void forward(float* values) {
    const size_t n = length_, odd_count = n / 2;
    for (size_t i = 0; i < n - odd_count; ++i) points_[i] = values[2 * i];
    for (size_t i = 0; i < odd_count; ++i) points_[n - 1 - i] = values[2 * i + 1];
    if (real_) {
      kiss_fftr(static_cast<kiss_fftr_cfg>(state_.get()), points_.data(), spectrum_.data());
    } else {
      for (size_t i = 0; i < n; ++i) complex_points_[i] = {points_[i], 0.0f};
      kiss_fft(static_cast<kiss_fft_cfg>(state_.get()), complex_points_.data(), spectrum_.data());
    }
    values[0] = spectrum_[0].r * first_scale_;
    for (size_t k = 1; k <= n / 2; ++k) {
      const kiss_fft_cpx v = spectrum_[k], w = rotation_[k];
      values[n - k] = v.r * w.i - v.i * w.r;
      values[k] = v.r * w.r + v.i * w.i;
    }
  }

  void inverse(float* values) {
    const size_t n = length_, odd_count = n / 2;
    spectrum_[0] = {values[0] * first_scale_, 0.0f};
    for (size_t k = 1; k <= n / 2; ++k) {
      const float a = values[k], b = values[n - k];
      const kiss_fft_cpx w = rotation_[k];
      spectrum_[k] = {a * w.r + b * w.i, a * w.i - b * w.r};
    }
    if (real_) {
      spectrum_[n / 2].i = 0;  // exactly zero but for rounding
      kiss_fftri(static_cast<kiss_fftr_cfg>(state_.get()), spectrum_.data(), points_.data());
    } else {
      for (size_t k = 1; k <= n / 2; ++k) spectrum_[n - k] = {spectrum_[k].r, -spectrum_[k].i};
      kiss_fft(static_cast<kiss_fft_cfg>(state_.get()), spectrum_.data(), complex_points_.data());
      for (size_t i = 0; i < n; ++i) points_[i] = complex_points_[i].r;
    }
    for (size_t i = 0; i < n - odd_count; ++i) values[2 * i] = points_[i];
    for (size_t i = 0; i < odd_count; ++i) values[2 * i + 1] = points_[n - 1 - i];
  }

  size_t length_;
  DctDirection direction_;
  bool real_;  // KissFFT's real transform takes even lengths only
  float first_scale_ = 1;
  std::unique_ptr<void, FreeFft> state_;
  std::vector<float> points_;
  std::vector<kiss_fft_cpx> complex_points_;
  std::vector<kiss_fft_cpx> spectrum_;
  std::vector<kiss_fft_cpx> rotation_;
};

struct Segment {
  size_t begin, length;
};

std::vector<Segment> segments_of(size_t length) {
  std::vector<Segment> segments;
  size_t begin = 0;
  for (const size_t part : dct_segments(length)) {
    segments.push_back({begin, part});
    begin += part;
  }
  return segments;
}

// Each row's points [segment.begin, +length) by itself.
bool transform_rows(float* values, size_t rows, size_t columns, Segment segment,
                    DctDirection direction, ThreadPool& pool) {
  std::atomic<bool> good = true;
  pool.parallel_for(rows, 16, [&](size_t begin, size_t end) {
    auto dct = Dct::create(segment.length, direction);
    if (!dct) {
      good = false;
      return;
    }
    for (size_t row = begin; row < end; ++row) {
      dct->transform(values + row * columns + segment.begin);
    }
  });
  return good;
}

// Each column's points; a strip of columns is turned into rows first, a cache line wide.
bool transform_columns(float* values, size_t columns, Segment segment, DctDirection direction,
                       ThreadPool& pool) {
  constexpr size_t kStrip = 16;
  std::atomic<bool> good = true;
  pool.parallel_for(columns, kStrip, [&](size_t begin, size_t end) {
    auto dct = Dct::create(segment.length, direction);
    if (!dct) {
      good = false;
      return;
    }
    std::vector<float> strip(kStrip * segment.length);
    for (size_t column = begin; column < end; column += kStrip) {
      const size_t width = std::min(kStrip, end - column);
      float* corner = values + segment.begin * columns + column;
      for (size_t i = 0; i < segment.length; ++i) {
        for (size_t j = 0; j < width; ++j) strip[j * segment.length + i] = corner[i * columns + j];
      }
      for (size_t j = 0; j < width; ++j) dct->transform(strip.data() + j * segment.length);
      for (size_t i = 0; i < segment.length; ++i) {
        for (size_t j = 0; j < width; ++j) corner[i * columns + j] = strip[j * segment.length + i];
      }
    }
  });
  return good;
}

}  // namespace

std::vector<size_t> dct_segments(size_t length) {
  std::vector<size_t> parts;
  while (length > 0) {
    parts.push_back(largest_smooth_up_to(std::min(length, kMaxDctSegment)));
    length -= parts.back();
  }
  return parts;
}

Status dct_2d(std::span<float> values, size_t rows, size_t columns, DctDirection direction,
              ThreadPool& pool) {
  if (columns != 0 && (rows > values.size() / columns || rows * columns != values.size())) {
    return fail(ErrorCode::invalid_argument, "a DCT of {} x {} points was given {} values", rows,
                columns, values.size());
  }
  if (values.empty()) return {};
  for (const Segment segment : segments_of(columns)) {
    if (segment.length > 1 &&
        !transform_rows(values.data(), rows, columns, segment, direction, pool)) {
      return fail(ErrorCode::resource_exhausted, "no memory for a DCT of {} points",
                  segment.length);
    }
  }
  for (const Segment segment : segments_of(rows)) {
    if (segment.length > 1 &&
        !transform_columns(values.data(), columns, segment, direction, pool)) {
      return fail(ErrorCode::resource_exhausted, "no memory for a DCT of {} points",
                  segment.length);
    }
  }
  return {};
}

}  // namespace hologram::holotensor
