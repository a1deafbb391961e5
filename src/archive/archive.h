// archive: the `.holo` file. All of it is little-endian:
//
//   1. header     64 bytes: magic "HOLO", u32 version, u64 file size, u64 section count, u64 offset
//                 of the section table, XXH3-128 of the table, XXH3-64 of the 56 bytes before it
//   2. sections   each at a multiple of 64 (a vector and a cache line); the constants at a multiple
//                 of 4096, so that a map of them shares pages between processes
//   3. table      one 48-byte entry a section: u32 kind, u32 zero, u64 offset, u64 size, u64 zero,
//                 XXH3-128 of its bytes (beyond 1 MiB: of the XXH3-128s of its blocks of 1 MiB)
//
// Bytes between sections are zero and are checked to be. So a flipped byte anywhere is an error.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "archive/plan_generated.h"
#include "support/result.h"
#include "support/thread_pool.h"

namespace hologram::archive {

inline constexpr uint32_t kVersion = 2;
enum class SectionKind : uint32_t { plan = 1, constants = 2, kernels = 3 };

struct Section {
  SectionKind kind;
  uint64_t offset, size;
};

struct OpenOptions {
  bool preload = false;  // read the file instead of mapping it
};

class Unverified;

// An opened archive: checked once, then read in place. Immutable; shared by any number of threads.
// Opening checks all but the bytes of the constants, which would have to be read for it: verify()
// does, and whoever uses them calls it first.
class Archive {
 public:
  static Result<Archive> open(const std::filesystem::path& path, const OpenOptions& options = {});
  // `owner` keeps `bytes` alive; bytes are 64-byte aligned.
  static Result<Archive> open(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  // The hashes that opening left out, on all threads of the pool. Once an archive: later calls only
  // look up the answer. Safe from any thread.
  Status verify(ThreadPool& threads = ThreadPool::shared()) const;

  const Model& model() const { return *model_; }
  std::span<const std::byte> constants() const { return constants_; }
  const std::vector<Section>& sections() const { return sections_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  const Model* model_ = nullptr;
  std::span<const std::byte> constants_;
  std::vector<Section> sections_;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<Unverified> unverified_;
};

// The bytes of an archive. `constants[i]` are the bytes of model.constants[i]; offsets and sizes
// are filled in here, equal bytes are stored once.
Result<std::vector<std::byte>> write(ModelT& model,
                                     std::span<const std::span<const std::byte>> constants);

// Every index and range of the plan is inside what it points into; called by open().
Status check(const Model& model, uint64_t constant_bytes);

}  // namespace hologram::archive
