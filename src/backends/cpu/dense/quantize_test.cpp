#include "backends/cpu/dense/quantize.h"

#include <cmath>

#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

TEST(Quantize, RoundsHalfToEvenBeforeTheZeroPointAndSaturates) {
  for_each_level([] {
    for (size_t count : {1, 15, 16, 17, 100}) {
      auto values = random_values(count, 3, -30.0f, 30.0f);
      values[0] = 0.25f * 2.5f;  // a tie
      if (count > 1) values[1] = 1e30f;
      if (count > 2) values[2] = -INFINITY;
      for (const Quantizer& q : {Quantizer{0.25f, 7, 0, 255}, Quantizer{0.25f, -7, -128, 127},
                                 Quantizer{0.25f, 100, 100, 255}}) {
        std::vector<uint8_t> bytes(count + 1, 0xee);
        quantize(q, values.data(), count, bytes.data());
        for (size_t i = 0; i < count; ++i) {
          const double whole = std::nearbyint(static_cast<double>(values[i] / q.scale)) + q.zero;
          const double wanted = std::min<double>(std::max<double>(whole, q.low), q.high);
          EXPECT_EQ(q.low < 0 ? static_cast<int8_t>(bytes[i]) : bytes[i], wanted) << values[i];
        }
        EXPECT_EQ(bytes[count], 0xee);
      }
    }
  });
}

TEST(Quantize, RangeHasZeroAndPassesOverNaN) {
  for_each_level([] {
    for (size_t count : {1, 16, 31, 32, 33, 100}) {
      auto values = random_values(count, 3, 1.0f, 2.0f);
      values[count / 2] = 5;
      EXPECT_EQ(range_of(values.data(), count).low, 0);
      EXPECT_EQ(range_of(values.data(), count).high, 5);
      values[0] = NAN;
      values[count - 1] = -3;
      EXPECT_EQ(range_of(values.data(), count).low, count == 1 ? -3 : -3);
    }
  });
}

TEST(Quantize, BackToFloats) {
  for_each_level([] {
    std::vector<uint8_t> bytes(261);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
    std::vector<float> values(bytes.size());
    for (bool is_signed : {false, true}) {
      dequantize(bytes.data(), bytes.size(), is_signed, 0.3f, is_signed ? -5 : 9, values.data());
      for (size_t i = 0; i < bytes.size(); ++i)
        EXPECT_EQ(values[i], is_signed
                                 ? static_cast<float>(static_cast<int8_t>(bytes[i]) + 5) * 0.3f
                                 : static_cast<float>(bytes[i] - 9) * 0.3f);
    }
  });
}

}  // namespace
}  // namespace hologram::backends::dense
