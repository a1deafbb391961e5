// Depthwise convolutions of bytes and the finish of their sums, by AVX-512 and its dot products of
// four bytes. Functions are null where the CPU lacks the instructions; results are those of the
// other levels bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/finish_int8.h"

namespace hologram::backends::dense {

// Channels of an image in blocks of 64, the last of 32 where that is enough. Within a block values
// lie as unpacking bytes in lanes of 16 leaves them, which packing undoes.
struct DepthwiseBlocks {
  static size_t padded(size_t channels) { return (channels + 31) / 32 * 32; }
  static size_t width(size_t channels, size_t block) { return channels - block > 32 ? 64 : 32; }
  // Where the value of a channel lies.
  static size_t place(size_t channels, size_t channel) {
    const size_t block = channel / 64 * 64, inside = channel % 64;
    return block + inside % 16 / 4 * (width(channels, block) / 4) + inside / 16 * 4 + inside % 4;
  }
};

// Neighbouring pixels of a depthwise convolution, from bytes to bytes.
struct DepthwiseQuads {
  const uint8_t* const* x;  // [pixel][x_row]: where a tap finds its channels
  size_t x_row;
  size_t pixels, quads, channels;  // quads: of taps
  uint8_t flip;                    // to make bytes unsigned
  // [block][quad][place][tap of four], `padded` channels in all.
  const int8_t* w;
  // `base`, `scales` and `biases` by places; `rows`, `width` and `zeros` are not used.
  Int8Bytes finish;
};

namespace detail {
struct DepthwiseKernel {
  // [tap][channel] -> DepthwiseQuads::w and the sum of each channel's weights, by places. False
  // where a weight has more than 8 bits.
  bool (*pack)(const int16_t* from, size_t taps, size_t channels, int8_t* w,
               int32_t* sums) = nullptr;
  void (*run)(const DepthwiseQuads&) = nullptr;
};
DepthwiseKernel vnni_depthwise();
// Of sums in rows of 16 or 32, without zeros.
using FinishBytesFunction = void (*)(const Int8Bytes&, const int32_t*);
FinishBytesFunction avx512_finish_bytes();
}  // namespace detail

}  // namespace hologram::backends::dense
