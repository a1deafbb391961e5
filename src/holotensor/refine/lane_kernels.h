// Kernels over elements, written once with Highway and dispatched at the call: between elements,
// carriers and planes. They work on one group of kGroup elements.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "holotensor/refine/number_format.h"
#include "holotensor/values.h"

namespace hologram::holotensor::refine {

struct GroupStatistics {
  double squares = 0;    // of the finite carriers; only good while neither over- nor underflowing
  uint32_t largest = 0;  // bits of the largest magnitude
  unsigned nonzero = 0;
};

// What split_group() finds in a group.
struct GroupSplit {
  uint32_t magnitude[kGroup];  // in units of the window's last plane; 0 for exceptions
  float units[kGroup];         // the same with all bits; NaN for exceptions
  uint64_t negative[kGroupWords];
  uint64_t exception[kGroupWords];  // too large or not finite
  uint64_t zero[kGroupWords];       // carriers that are +0
};

// `count` elements (at most kGroup) of the format into carriers; the rest of `out` is zero-filled.
void load_carriers(const NumberFormat& format, const std::byte* from, size_t count, float* out);
GroupStatistics group_statistics(const float* carriers);

void split_group(const NumberFormat& format, const Window& window, const float* carriers,
                 GroupSplit& out);
// Bit `planes - 1 - i` of each magnitude into planes[i * stride + word].
void planes_of_group(const uint32_t* magnitude, unsigned planes, uint64_t* out, size_t stride);
// The reverse for the first `depth` planes; lower bits are zero.
void group_of_planes(const uint64_t* planes, size_t stride, unsigned count, unsigned depth,
                     uint32_t* magnitude);

// Signed magnitudes as carriers, exactly.
void exact_carriers(const Window& window, const uint32_t* magnitude, const uint64_t* negative,
                    float* out);
// The same when only `depth` planes are known: each magnitude lies in a cell of 2^(planes - depth)
// units and is put at `centroid[m]` of it for the first eight cells m, at centroid[8] in the
// others. Elements whose last bit is known are exact. Bits below `depth` are ignored.
inline constexpr unsigned kCentroids = 8;
void approximate_carriers(const NumberFormat& format, const Window& window, unsigned depth,
                          const float* centroid, const uint32_t* magnitude,
                          const uint64_t* negative, float* out);

struct GroupError {
  double squares = 0;
  double largest = 0;
};
// What approximate_carriers() leaves. Elements whose units are NaN are not measured.
GroupError approximation_error(const NumberFormat& format, const Window& window, unsigned depth,
                               const float* centroid, const GroupSplit& split);
// The squares and the largest of the values themselves.
GroupError group_squares(const float* values);
// The same of elements that each occur `counts[i]` times, below 2^31.
GroupError weighted_error(const NumberFormat& format, const Window& window, unsigned depth,
                          const float* centroid, const GroupSplit& split, const uint32_t* counts);
GroupError weighted_squares(const float* values, const uint32_t* counts);

// Carriers into elements of `type`, which is the format's own type, f32, f16 or bf16.
void store_carriers(const NumberFormat& format, const float* carriers, DType type, size_t count,
                    std::byte* to);

}  // namespace hologram::holotensor::refine
