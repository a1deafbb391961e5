// Weights kept as f16 and widened to f32 as they are used: half the bytes to store and to read, the
// arithmetic of gemm.h. Rules of gemm.h hold.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/gemm.h"

namespace hologram::backends::dense {

// Exact.
void widen_half(const uint16_t* from, float* to, size_t count, ThreadPool& pool);

// gemm() with B packed by pack_b and rounded to f16, a group of panels at a time. `gemm` has
// neither b nor packed_b, and no pointwise program.
size_t gemm_half_scratch_bytes(const Gemm& gemm);
void gemm_half(const Gemm& gemm, const uint16_t* packed_b, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
