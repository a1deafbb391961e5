// Fourier transforms of overlapping windows of a signal. Models spell them out as convolutions by
// windowed cosines and sines; as what they are they take a twentieth of the products and no weights
// but the window.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "support/thread_pool.h"

namespace hologram::backends::dense {

// Which filters there are, one for each of the taps / 2 + 1 frequencies: cosines, sines, or
// cosines and then sines.
enum class Waves { cosines, sines, both };

// Filters that are a transform: times window[n], cosines of 2 pi k n / taps and `sine` times sines.
struct FourierFilters {
  Waves waves;
  float sine;  // 1 or -1
  std::vector<float> window;
};

// A power of two in this range.
inline constexpr size_t kFewestTaps = 16, kMostTaps = 1024;
bool fourier_supported(size_t taps);

// What the filters of a convolution, [filters][taps], are a transform by; nothing where one is off
// by more than rounding.
std::optional<FourierFilters> fourier_filters(size_t filters, size_t taps, const float* weights);

size_t fourier_rows(Waves waves, size_t taps);

// The window and the roots of unity as fourier() reads them.
size_t fourier_table_floats(size_t taps);
void make_fourier_table(const FourierFilters& filters, float* table);

struct Fourier {
  size_t batch = 1, samples = 0;  // of a signal
  size_t taps = 0, stride = 1;
  size_t frames = 0;  // the last ends within the signal
  Waves waves = Waves::both;
  float sine = 1;
  const float* input = nullptr;  // [batch][samples]
  const float* table = nullptr;
  float* output = nullptr;  // [batch][rows][frames]
  float* sines = nullptr;   // of both: output has the cosines alone, and this the sines likewise
};

// A frame is computed by itself in an order that the taps alone decide.
void fourier(const Fourier& transform, ThreadPool& pool);

}  // namespace hologram::backends::dense
