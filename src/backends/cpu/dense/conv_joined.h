// A 1 x 1 convolution and the depthwise convolution that alone reads its result, in one step: rows
// of the image between them are made in memory that stays in the near caches of the thread that
// reads them at once. Where the third cache is slow, a large image costs more to write and to read
// than to compute.
//
// Each thread takes a band of rows of the result. Rows of the image between that two bands need are
// made twice; of few rows a thread, or of a small image on one, the two steps run one after the
// other instead. The bits are those of two steps.
//
// Rules of conv.h hold.
#pragma once

#include "backends/cpu/dense/conv_bf16.h"

namespace hologram::backends::dense {

struct JoinedConv {
  Conv points;                       // f32 in and out; its output is not used
  const ConvBf16* narrow = nullptr;  // instead of `points`, which then has just the shape
  Conv depthwise;                    // its input is not used
};

// All images blocked; the first convolution of one group, 1 x 1 and as many pixels as it reads, at
// least two a row; the second depthwise. Neither adds a residual.
bool joined_conv_supported(const ConvShape& points, const ConvShape& depthwise);
size_t joined_conv_scratch_bytes(const JoinedConv& conv, unsigned threads);
void joined_conv(const JoinedConv& conv, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
