// The native code section: machine code of an archive's programs for one CPU level, signed.
//
// Little-endian; offsets count from the first byte of the section.
//
//   1. header      64 bytes: u32 version, u32 ABI version (isa/native_abi.h), u32 level (2, 3, 4
//   for
//                  x86-64-v2 ..), u32 entries, 32 bytes: the signer's public key, 16 zeros
//   2. entries     entries x 80 bytes: u32 program, u32 uniform, u64 code offset, u64 code size,
//   u64
//                  offset of the entry point in the code, u64 fixed scratch, u64 scratch a thread,
//                  BLAKE2b-256 of the program's ISA
//   3. code        position independent, without outside symbols; each at a multiple of 64
//   4. signature   the last 64 bytes: Ed25519ph over all bytes before it
//
// An entry is code for one way to call a program: bit k of `uniform` set means that input k is one
// element that all threads read. Since an entry names the program by its hash, signed code cannot
// be made to run for another program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "archive/signature.h"
#include "isa/native_code.h"

namespace hologram::archive {

struct CodeEntry {
  uint32_t program = 0, uniform = 0;
  uint64_t code_offset = 0, code_size = 0;  // in the section
  uint64_t entry_offset = 0;                // in the code
  uint64_t scratch_fixed = 0, scratch_per_thread = 0;
  std::array<std::byte, 32> program_hash{};
};

// A read-only view of a section: every offset checked, nothing trusted. The bytes outlive it.
class CodeSection {
 public:
  // corrupt where it is no section of this version; unsupported where the ABI is another.
  static Result<CodeSection> open(std::span<const std::byte> bytes);

  uint32_t level() const { return level_; }
  const PublicKey& signer() const { return signer_; }
  // The signature is the signer's, over these very bytes.
  bool is_genuine() const;
  std::span<const CodeEntry> entries() const { return entries_; }

 private:
  std::span<const std::byte> bytes_;
  uint32_t level_ = 0;
  PublicKey signer_;
  std::vector<CodeEntry> entries_;
};

// The level of a section without looking further; 0 where it is too short to tell.
uint32_t code_level(std::span<const std::byte> bytes);

// Code to be stored: for a program (its ISA too, for the hash), called in one way.
struct CompiledProgram {
  uint32_t program = 0, uniform = 0;
  std::vector<std::byte> isa;
  isa::NativeCode code;
};

std::vector<std::byte> write_code_section(uint32_t level, std::span<const CompiledProgram> programs,
                                          const KeyPair& key);

}  // namespace hologram::archive
