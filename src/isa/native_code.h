// NativeCode: machine code of one program, as bytes that can be stored and mapped anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "isa/native_abi.h"

namespace hologram::isa {

struct NativeCode {
  uint32_t abi_version = kNativeAbiVersion;
  std::string level;                // "x86-64-v2", "x86-64-v3", "x86-64-v4"
  std::vector<std::byte> code;      // text and read-only data, position independent
  uint64_t entry_offset = 0;        // of a NativeEntry inside `code`
  uint64_t words_offset = 0;        // of the function of the words; 0: there is none
  uint64_t scratch_fixed = 0;       // bytes of scratch whatever the launch
  uint64_t scratch_per_thread = 0;  // more bytes for every thread of a block

  uint64_t scratch_bytes(uint64_t block_threads, uint64_t shared_bytes) const {
    return scratch_fixed + scratch_per_thread * ((block_threads + 63) / 64 * 64) + shared_bytes +
           64;
  }
};

}  // namespace hologram::isa
