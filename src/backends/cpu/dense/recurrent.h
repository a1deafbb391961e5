// LSTM and GRU in f32, one direction, with sigmoid gates and tanh states (the usual activations).
//
// The inputs of all steps are multiplied in one product; a step is then one product of the state
// with the recurrent weights and one loop over the gates. Weights are packed by pack_b from the
// ONNX matrices: pack_b(input, gates * hidden, W, input, true, ...), pack_b(hidden, gates * hidden,
// R, hidden, true, ...), gates in ONNX order: i o f c for LSTM, z r h for GRU.
//
// Either matrix may be of 16 bits instead (pack_b_words of a word_form): for few rows, that is for
// a small batch, and for W few steps as well.
//
// Strides are in floats. Bits depend neither on threads nor on the batch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/thread_pool.h"

namespace hologram::backends::dense {

struct Recurrent {
  size_t steps = 0, batch = 0, input = 0, hidden = 0;
  bool reverse = false;
  const float* x = nullptr;  // x[step * x_step + sample * x_sample + i]
  size_t x_step = 0, x_sample = 0;
  const float* packed_w = nullptr;
  const float* packed_r = nullptr;
  const std::byte* words_w = nullptr;  // instead of packed_w
  const std::byte* words_r = nullptr;  // instead of packed_r
  const float* bias = nullptr;         // that of W, then that of R: 2 * gates * hidden; or null
  const float* initial_h = nullptr;    // batch x hidden, or null for zero
  const float* initial_c = nullptr;    // LSTM
  const float* peephole = nullptr;     // LSTM: 3 * hidden (i o f), or null
  const int32_t* lengths = nullptr;    // steps of each sample, or null for all
  float clip = 0.0f;                   // gates are clipped to +-clip before activation; 0: not
  bool linear_before_reset = false;    // GRU
  float* y = nullptr;                  // the state after each step, or null; 0 beyond a length
  size_t y_step = 0, y_sample = 0;
  float* last_h = nullptr;  // batch x hidden, or null
  float* last_c = nullptr;  // LSTM
};

size_t lstm_scratch_bytes(const Recurrent& r);
void lstm(const Recurrent& r, std::byte* scratch, ThreadPool& pool);
size_t gru_scratch_bytes(const Recurrent& r);
void gru(const Recurrent& r, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
