#include "backends/cpu/dense/fourier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

// Filters as models have them, by any window.
std::vector<float> filters_of(Waves waves, double sine, const std::vector<float>& window) {
  const size_t taps = window.size(), rows = taps / 2 + 1;
  std::vector<float> w;
  for (const bool is_sine : {false, true}) {
    if (waves == (is_sine ? Waves::cosines : Waves::sines)) continue;
    for (size_t k = 0; k < rows; ++k)
      for (size_t n = 0; n < taps; ++n) {
        const double angle = 2 * std::numbers::pi * double(k * n % taps) / double(taps);
        w.push_back(float(window[n] * (is_sine ? sine * std::sin(angle) : std::cos(angle))));
      }
    if (!is_sine) continue;
    for (size_t n = 0; n < taps; ++n) w[(w.size() / taps - rows) * taps + n] = 0;
  }
  return w;
}

struct Shape {
  size_t batch, samples, taps, stride;
};

TEST(Fourier, IsTheConvolutionByItsFilters) {
  for_each_level([] {
    for (const Shape& s :
         {Shape{1, 704, 256, 128}, Shape{2, 1728, 256, 64}, Shape{1, 12640, 512, 160},
          Shape{3, 16, 16, 1}, Shape{1, 200, 32, 7}, Shape{2, 3000, 1024, 1000},
          Shape{1, 400, 64, 20}, Shape{1, 1000, 128, 64}})
      for (const Waves waves : {Waves::cosines, Waves::sines, Waves::both})
        for (const double sine : {1.0, -1.0}) {
          if (waves == Waves::cosines && sine < 0) continue;
          const std::vector<float> window = random_values(s.taps, 3, 0.1f, 1.0f),
                                   x = random_values(s.batch * s.samples, 1);
          const std::vector<float> w = filters_of(waves, sine, window);
          const size_t rows = fourier_rows(waves, s.taps);
          const auto found = fourier_filters(rows, s.taps, w.data());
          ASSERT_TRUE(found.has_value()) << s.taps << " " << int(waves);
          EXPECT_EQ(found->waves, waves);
          std::vector<float> table(fourier_table_floats(s.taps));
          make_fourier_table(*found, table.data());
          Fourier t{.batch = s.batch,
                    .samples = s.samples,
                    .taps = s.taps,
                    .stride = s.stride,
                    .frames = (s.samples - s.taps) / s.stride + 1,
                    .waves = waves,
                    .sine = found->sine,
                    .input = x.data(),
                    .table = table.data()};
          std::vector<float> y(s.batch * rows * t.frames, 1e30f), other = y;
          t.output = y.data();
          ThreadPool one(1), three(3);
          fourier(t, one);
          t.output = other.data();
          fourier(t, three);
          ASSERT_EQ(y, other);
          if (waves == Waves::both) {  // the same where sines are apart
            std::vector<float> apart[2];
            for (auto& part : apart) part.assign(y.size() / 2, 1e30f);
            t.output = apart[0].data(), t.sines = apart[1].data();
            fourier(t, three);
            const size_t part = rows / 2 * t.frames;
            for (size_t i = 0; i < y.size(); ++i)
              ASSERT_EQ(apart[i / part % 2][i / (2 * part) * part + i % part], y[i]) << i;
          }
          for (size_t b = 0; b < s.batch; ++b)
            for (size_t f = 0; f < rows; ++f)
              for (size_t i = 0; i < t.frames; ++i) {
                double sum = 0, size = 0;
                for (size_t n = 0; n < s.taps; ++n) {
                  const double term =
                      double(x[b * s.samples + i * s.stride + n]) * w[f * s.taps + n];
                  sum += term;
                  size += term * term;
                }
                ASSERT_NEAR(y[(b * rows + f) * t.frames + i], sum, 3e-6 * std::sqrt(size + 0.01))
                    << s.taps << " taps, row " << f << " frame " << i;
              }
        }
  });
}

TEST(Fourier, OtherFiltersAreNone) {
  const std::vector<float> window = random_values(64, 3, 0.1f, 1.0f);
  const std::vector<float> right = filters_of(Waves::both, 1, window);
  ASSERT_TRUE(fourier_filters(66, 64, right.data()));
  for (const size_t at : {size_t{0}, size_t{64 * 5 + 17}, right.size() - 3}) {
    std::vector<float> wrong = right;
    wrong[at] += 1e-5f;
    EXPECT_FALSE(fourier_filters(66, 64, wrong.data())) << at;
    wrong[at] = NAN;
    EXPECT_FALSE(fourier_filters(66, 64, wrong.data())) << at;
  }
  EXPECT_FALSE(fourier_filters(65, 64, right.data()));
  EXPECT_FALSE(fourier_filters(33, 64, right.data() + 64));
  EXPECT_FALSE(fourier_filters(25, 48, right.data()));      // no power of two
  EXPECT_FALSE(fourier_filters(5, 8, right.data()));        // too few
  EXPECT_FALSE(fourier_filters(1025, 2048, right.data()));  // too many
}

}  // namespace
}  // namespace hologram::backends::dense
