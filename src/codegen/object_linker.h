// The object linker: an ELF object in memory becomes one position-independent blob.
//
// Code and read-only data are laid out together and references between them, all relative, are
// filled in. Anything that would need a loader (an undefined symbol, an absolute address, data that
// can be written) is an internal error: the code generator must not produce it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace hologram::codegen {

struct LinkedCode {
  std::vector<std::byte> bytes;  // to be mapped at a multiple of 64
  uint64_t entry_offset = 0;
  uint64_t second_offset = 0;  // 0: there is none; entries are never first
};

// `object`: a relocatable x86-64 ELF file that defines the function `entry`, and may define
// `second`.
Result<LinkedCode> link_object(std::span<const std::byte> object, std::string_view entry,
                               std::string_view second = {});

}  // namespace hologram::codegen
