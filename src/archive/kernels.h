// A .holo archive of kernels: one section, SectionKind::kernels, that holds a bundle
// (runtime/bundle/kernel_bundle.h). It has no plan: Archive::open refuses it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "support/result.h"

namespace hologram::archive {

std::vector<std::byte> write_kernels(std::span<const std::byte> bundle);

// The bundle's bytes; corrupt for a damaged file, invalid_argument for an archive without kernels.
Result<std::vector<std::byte>> read_kernels(const std::filesystem::path& path);

}  // namespace hologram::archive
