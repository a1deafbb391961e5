// Convolutions of 8-bit integers with one channel a group: the taps of a pixel are summed two at a
// time, all channels beside each other. Images have their channels last. Part of conv_int8.
#pragma once

#include "backends/cpu/dense/conv_int8.h"

namespace hologram::backends::dense {

size_t depthwise_int8_scratch_bytes(const ConvInt8& conv);
// Fills the scratch from the packed weights, once for all images.
void prepare_depthwise_int8(const ConvInt8& conv, std::byte* scratch);
// One image; `result` as ConvInt8::output says.
void depthwise_int8(const ConvInt8& conv, const uint8_t* image, std::byte* result,
                    const std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
