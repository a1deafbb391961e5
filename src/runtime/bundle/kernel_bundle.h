// KernelBundle: many kernels in one block of bytes, each as ISA and as native code for some levels.
// The runtime carries one with the ops; kernels written in Python are added to it by the same tool.
//
// Little-endian. Offsets count from the first byte of the bundle.
//
//   1. header     64 bytes: magic "HKBN", u32 version, u32 kernels, u32 natives, u64 total bytes,
//                 zeros
//   2. kernels    kernels x 32 bytes, sorted by name, no name twice: u32 name offset, u32 name
//   size,
//                 u64 ISA offset, u64 ISA size, u32 first native, u32 native count
//   3. natives    natives x 64 bytes: u32 level name offset, u32 level name size, u32 ABI version,
//                 u32 zero, u64 code offset, u64 code size, u64 entry offset, u64 fixed scratch,
//                 u64 scratch a thread, u64 zero
//   4. strings, ISA (isa/binary.h) and code; code starts at multiples of 64, so that its constants
//      lie as they were compiled to
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isa/native_code.h"
#include "isa/program.h"
#include "support/result.h"

namespace hologram::runtime {

inline constexpr uint32_t kBundleVersion = 1;

// A read-only view; the bytes must outlive it. Immutable.
class KernelBundle {
 public:
  KernelBundle() = default;  // of no kernels
  // Checks every offset once: corrupt or unsupported for bytes that are no bundle of this version.
  static Result<KernelBundle> open(std::span<const std::byte> bytes);

  size_t size() const { return count_; }
  std::string_view name(size_t index) const;
  std::optional<size_t> find(std::string_view name) const;
  // Decodes and verifies.
  Result<isa::Program> program(size_t index) const;
  // The native code of every level there is; copies the bytes.
  std::vector<isa::NativeCode> native(size_t index) const;

 private:
  std::span<const std::byte> bytes_;
  uint32_t count_ = 0;
};

class KernelBundleWriter {
 public:
  // already_exists for a name that was added before.
  Status add(const isa::Program& program, std::vector<isa::NativeCode> native);
  std::vector<std::byte> finish() const;

 private:
  struct Entry {
    std::string name;
    std::vector<std::byte> isa;
    std::vector<isa::NativeCode> native;
  };
  std::vector<Entry> entries_;  // sorted by name
};

}  // namespace hologram::runtime
