// Softmax and normalisations in f32. A row is read from cache after its first pass.
//
// Sums have a fixed tree that depends on the length of the row alone: the same bits for every
// thread count and batch. Pointers are borrowed; outputs may be the inputs.
#pragma once

#include <cstddef>

#include "support/thread_pool.h"

namespace hologram::backends::dense {

// Over the middle of (outer, n, inner). A row that is -infinity everywhere gives NaN, as the
// definition does.
void softmax(size_t outer, size_t n, size_t inner, const float* x, float* y, ThreadPool& pool);
void log_softmax(size_t outer, size_t n, size_t inner, const float* x, float* y, ThreadPool& pool);

// How sums over a row are added: by the level's tree, or in an order of ONNX Runtime, so that what
// is rounded to 8 bits behind it falls to the same side (docs/quantize.md).
enum class SumOrder : unsigned char {
  tree,
  eight,     // eight chains
  sequence,  // the mean value by value, the rest as eight: the axis was not the last, of one sample
  fours,     // the mean by four values at a time: the same, of several samples
};

// y = (v - mean(v)) / sqrt(variance(v) + epsilon) * scale + bias of each row v; without the mean
// when `rms`. With a residual, v = x + residual, written to `sum` where that is given.
struct RowNorm {
  size_t rows = 0, n = 0;
  const float* x = nullptr;
  const float* residual = nullptr;  // rows x n, or null
  float* sum = nullptr;             // rows x n, or null
  const float* scale = nullptr;     // n values, or null for 1
  const float* bias = nullptr;      // n values, or null for 0
  float epsilon = 1e-5f;
  bool rms = false;
  SumOrder order = SumOrder::tree;  // any other: not rms, and without a bias
  float* y = nullptr;
  float* mean = nullptr;               // a value a row, or null
  float* inverse_deviation = nullptr;  // a value a row, or null
};
void row_norm(const RowNorm& norm, ThreadPool& pool);

// nchw: every group of channels of a sample to mean 0 and variance 1, then scale and bias a channel
// (null: 1 and 0). groups == channels is instance normalisation.
struct GroupNorm {
  size_t batch = 0, channels = 0, pixels = 0, groups = 1;
  const float* x = nullptr;
  const float* scale = nullptr;
  const float* bias = nullptr;
  float epsilon = 1e-5f;
  SumOrder order = SumOrder::tree;  // eight: for groups of one channel
  float* y = nullptr;
};
void group_norm(const GroupNorm& norm, ThreadPool& pool);

}  // namespace hologram::backends::dense
