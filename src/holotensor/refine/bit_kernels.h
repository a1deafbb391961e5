// Kernels over planes: words of 64 elements, one bit each.
//
// A plane's bits are split into up to four contexts by what the planes above it say of the
// element's magnitude m (its bits so far): 0, 1, 2-3, 4 and more. Each context is a stream of bits
// packed without gaps. Compiled twice, with and without BMI2; both give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hologram::holotensor::refine {

inline constexpr unsigned kContexts = 4;

// The planes above the one being coded. significant[j] is the union of planes 0..j. Null where
// there is no such plane, which reads as zero (or, for `live`, as all ones).
struct PlaneMasks {
  const uint64_t* live = nullptr;    // elements that take part
  const uint64_t* above1 = nullptr;  // significant[i-1]: m >= 1
  const uint64_t* above2 = nullptr;  // significant[i-2]: m >= 2
  const uint64_t* above3 = nullptr;  // significant[i-3]: m >= 4
  const uint64_t* done = nullptr;    // elements whose last bit is above
};

// Packs bits behind each other. `out` has room for one word more than the bits need.
struct BitSink {
  uint64_t* out = nullptr;
  uint64_t pending = 0;
  unsigned fill = 0;
  uint64_t bits = 0;
  uint64_t ones = 0;

  void finish() { *out = pending; }
};

// Reads them again. 16 readable bytes follow the last bit.
struct BitTap {
  const std::byte* bytes = nullptr;
  uint64_t position = 0;
};

struct BitKernels {
  // Words [begin, end) of `plane` into one stream a context, or all into sinks[0] when flat.
  void (*split)(const uint64_t* plane, const PlaneMasks& masks, size_t begin, size_t end, bool flat,
                BitSink* sinks);
  // The reverse.
  void (*merge)(uint64_t* plane, const PlaneMasks& masks, size_t begin, size_t end, bool flat,
                BitTap* taps);
  // significant = before | plane; returns the number of ones. `before` may be null.
  uint64_t (*accumulate)(const uint64_t* before, const uint64_t* plane, size_t begin, size_t end,
                         uint64_t* significant);
  // The number of ones.
  uint64_t (*count)(const uint64_t* words, size_t begin, size_t end);
};

const BitKernels& bit_kernels();
extern const BitKernels kPortableBitKernels;  // for tests

}  // namespace hologram::holotensor::refine
