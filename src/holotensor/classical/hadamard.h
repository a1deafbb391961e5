// hadamard: the orthonormal fast Walsh-Hadamard transform.
#pragma once

#include <span>

namespace hologram::holotensor {

// In place; its own inverse. The length must be a power of two (1 included).
void hadamard(std::span<float> values);

}  // namespace hologram::holotensor
