#include "holotensor/refine/byte_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "holotensor/refine/lane_kernels.h"

namespace hologram::holotensor::refine {
namespace {

constexpr DType kSmallFloats[] = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,
                                  DType::f8e5m2fnuz};

std::vector<std::byte> every_code() {
  std::vector<std::byte> codes(kGroup);
  for (unsigned i = 0; i < kGroup; ++i) codes[i] = static_cast<std::byte>(i);
  return codes;
}

TEST(SmallFloat, MatchesTheTypes) {
  for (const DType type : kSmallFloats) {
    const SmallFloat format = small_float_of(type);
    for (unsigned code = 0; code < 256; ++code) {
      const float value = small_float_to_f32(type, static_cast<uint8_t>(code));
      const bool special = (code & 0x7f) >= format.first_special || code == format.special_code;
      ASSERT_EQ(special, !std::isfinite(value)) << name_of(type) << " " << code;
      if (special) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(small_float_value(format, code)),
                std::bit_cast<uint32_t>(value))
          << name_of(type) << " " << code;
      if (value == 0) continue;
      // As a whole number of units, for every unit that makes it one.
      for (int unit = format.unit() - 4; unit <= 0; ++unit) {
        const double units = std::ldexp(std::abs(static_cast<double>(value)), -unit);
        if (units != std::floor(units) || units >= 0x1p20) continue;
        ASSERT_EQ(small_float_magnitude(format, static_cast<uint32_t>(units), unit), code & 0x7f)
            << name_of(type) << " " << code << " unit " << unit;
      }
    }
  }
}

// Every code whose bits all lie inside the planes comes back, at every scale.
TEST(ByteKernels, GiveBackSmallFloats) {
  const auto codes = every_code();
  for (const DType type : kSmallFloats) {
    const NumberFormat format = *format_of(type);
    unsigned compared = 0;
    for (int largest = -25; largest <= 18; ++largest) {
      const Window window = window_of(format, largest, 0);
      float carriers[kGroup];
      GroupSplit split;
      load_carriers(format, codes.data(), kGroup, carriers);
      split_group(format, window, carriers, split);
      std::vector<uint64_t> planes(window.planes * kGroupWords);
      planes_of_group(split.magnitude, window.planes, planes.data(), kGroupWords);
      std::byte back[kGroup];
      small_float_codes(small_float_of(type), window, planes.data(), kGroupWords, split.negative,
                        back);
      for (unsigned i = 0; i < kGroup; ++i) {
        const bool whole = split.units[i] == std::floor(split.units[i]);  // false for exceptions
        if (!whole) continue;
        ++compared;
        ASSERT_EQ(back[i], codes[i]) << name_of(type) << " " << i << " scale " << largest;
      }
    }
    EXPECT_GT(compared, 2000u) << name_of(type);
  }
}

TEST(ByteKernels, GiveBackIntegers) {
  const auto codes = every_code();
  for (const DType type : {DType::i8, DType::u8}) {
    const NumberFormat format = *format_of(type);
    const Window window = window_of(format, 4, 0);  // all seven planes
    float carriers[kGroup];
    GroupSplit split;
    load_carriers(format, codes.data(), kGroup, carriers);
    split_group(format, window, carriers, split);
    std::vector<uint64_t> planes(window.planes * kGroupWords);
    planes_of_group(split.magnitude, window.planes, planes.data(), kGroupWords);
    std::vector<std::byte> back(kGroup);
    integer_codes(planes.data(), kGroupWords, window.planes, split.negative,
                  type == DType::u8 ? 0x80 : 0, back.data());
    EXPECT_EQ(back, codes) << name_of(type);
  }
}

}  // namespace
}  // namespace hologram::holotensor::refine
