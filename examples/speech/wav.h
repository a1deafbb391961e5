// Speech from a .wav file.
#pragma once

#include <filesystem>
#include <vector>

#include "support/result.h"

namespace speech {

// Samples in -1..1. The file must be 16-bit PCM, one channel, 16,000 samples a second: what sox
// makes of anything with `-r 16000 -c 1 -b 16`.
hologram::Result<std::vector<float>> read_wav(const std::filesystem::path& path);

}  // namespace speech
