// The fixed parts of the file, byte for byte; see archive.h.
#pragma once

#include <cstdint>

#include "archive/archive.h"
#include "support/hash.h"

namespace hologram::archive {

inline constexpr uint32_t kMagic = 0x4f4c4f48;  // "HOLO"
inline constexpr uint64_t kConstantsAlignment = 4096;

struct Header {
  uint32_t magic, version;
  uint64_t file_size, section_count, table_offset;
  Hash128 table_hash;
  uint64_t reserved;  // zero
  uint64_t hash;      // of the 56 bytes before it
};
static_assert(sizeof(Header) == 64);

struct Entry {
  SectionKind kind;
  uint32_t reserved;
  uint64_t offset, size;
  uint64_t hashed;  // of its first bytes; 0: all
  Hash128 hash;

  uint64_t hashed_bytes() const { return hashed == 0 ? size : hashed; }
};
static_assert(sizeof(Entry) == 48);

inline uint64_t header_hash(const Header& header) {
  return hash64(std::as_bytes(std::span(&header, 1)).first(sizeof(Header) - sizeof(uint64_t)));
}

// What an entry's hash is of: up to kHashBlock bytes themselves, beyond that the hashes of its
// blocks, so that large sections can be hashed by many threads.
inline constexpr uint64_t kHashBlock = uint64_t{1} << 20;
constexpr uint64_t block_count(uint64_t bytes) { return (bytes + kHashBlock - 1) / kHashBlock; }
Hash128 section_hash(std::span<const std::byte> bytes);
// The hashes of the blocks; none of what is one block.
std::vector<Hash128> block_hashes(std::span<const std::byte> bytes);

// Sections that opening leaves to Archive::verify(): large ones that nothing reads before a run.
constexpr bool is_verified_later(SectionKind kind) { return kind == SectionKind::constants; }

// The bytes of a file, or its first as far as opening needs them, and how many the whole file has.
struct FileBytes {
  std::span<const std::byte> bytes;
  uint64_t size = bytes.size();

  bool holds(uint64_t offset, uint64_t count) const {
    return offset <= bytes.size() && count <= bytes.size() - offset;
  }
};

// How many of its first bytes tell what read_table() and opening look at: all but the constants,
// where those come last. Given too few to tell it asks for more; of what is no archive, for none.
uint64_t head_size(const FileBytes& file);

// The section table of a file: every range and gap checked, and every hash but those of sections
// that are verified later. Only weights may be cut off.
Result<std::vector<Entry>> read_table(const FileBytes& bytes);

}  // namespace hologram::archive
