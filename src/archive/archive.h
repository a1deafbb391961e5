// archive: the `.holo` file. All of it is little-endian:
//
//   1. header     64 bytes: magic "HOLO", u32 version, u64 file size, u64 section count, u64 offset
//                 of the section table, XXH3-128 of the table, XXH3-64 of the 56 bytes before it
//   2. sections   each at a multiple of 64 (a vector and a cache line); the constants at a multiple
//                 of 4096, so that a map of them shares pages between processes
//   3. table      between two sections or last, written before the constants, so that all that
//                 opening reads is in one piece; one 48-byte entry a section: u32 kind, u32 zero,
//                 u64 offset, u64 size, u64 how many of its first bytes are hashed (0: all),
//                 XXH3-128 of those (beyond 1 MiB: of the XXH3-128s of their blocks of 1 MiB). The
//                 constants' hashes of blocks are a section of their own, so that a run can check
//                 each block just before it first reads it
//   4. weights    where constants are stored as HoloTensor fragments (compile --weights): a `.ht`
//                 file as the last section. Its directory is hashed here, each
//                 fragment has a hash of its own
//
// Bytes between sections are zero and are checked to be. So a flipped byte anywhere is an error,
// except in a fragment: that one is then missing. A file cut off between fragments still opens.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "archive/plan_generated.h"
#include "archive/trust.h"
#include "support/result.h"
#include "support/thread_pool.h"

namespace hologram::archive {

inline constexpr uint32_t kVersion = 5;
enum class SectionKind : uint32_t {
  plan = 1,
  constants = 2,
  kernels = 3,
  weights = 4,
  code = 5,
  hashes = 6
};

struct Section {
  SectionKind kind;
  uint64_t offset, size;
};

struct OpenOptions {
  bool preload = false;  // read the file instead of mapping it
  // Large constants stay in this process's memory between runs (see archive/pages.h): some percent
  // faster where they are mapped.
  bool keep_pages = false;
  // Whose native code may run; null: the user's (archive/trust.h).
  std::shared_ptr<const TrustedKeys> trusted = nullptr;
};

// When a part of the constants is checked, and for what.
enum class Reading : uint8_t {
  whole,  // before it is read
  part,   // before little of it is read: pages that checking brings in are let go of again
  done,   // after it was read, while the caches hold it. What is too little for all threads waits
          // for a later call, at the latest for that of the whole
};

class PageRelease;
class Unverified;
struct FileBytes;

// An opened archive: checked once, then read in place. Immutable; shared by any number of threads.
// Opening checks all but the bytes of the constants, which would have to be read for it: verify()
// does, and whoever uses them calls it first.
class Archive {
 public:
  static Result<Archive> open(const std::filesystem::path& path, const OpenOptions& options = {});
  // `owner` keeps `bytes` alive; bytes are 64-byte aligned.
  static Result<Archive> open(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                              const OpenOptions& options = {});

  // The hashes that opening left out, on all threads of the pool. Once an archive: later calls only
  // look up the answer. Safe from any thread.
  Status verify(ThreadPool& threads = ThreadPool::shared()) const;
  // The same of part of the constants alone; bytes that are none of them need no check.
  Status verify(std::span<const std::byte> part, ThreadPool& threads, Reading reading) const;
  // Brings in the pages of this part, on all threads, before a step reads it: threads that meet
  // them together wait for each other at every one.
  void bring_in(std::span<const std::byte> part, ThreadPool& threads) const;
  // Whether verify() has passed.
  bool is_verified() const;
  // Lets go of constants after a step; null where they stay: not mapped, few, kept or too dear.
  PageRelease* page_release() const;

  const Model& model() const { return *model_; }
  // Their bytes, unverified. Those of a file are mapped when they are first asked for, which is
  // what can fail; until then the archive keeps the file open. Safe from any thread.
  Result<std::span<const std::byte>> constants() const;
  // The HoloTensor section, as far as the file goes; empty where all constants are plain.
  std::span<const std::byte> weights() const { return weights_; }
  // Native code sections (archive/code_section.h), one a CPU level: as they are, not trusted.
  std::span<const std::span<const std::byte>> code() const { return code_; }
  // Whose native code may run: what the archive was opened with, or the user's.
  TrustedKeys trusted() const { return trusted_ ? *trusted_ : TrustedKeys::of_user(); }
  const std::vector<Section>& sections() const { return sections_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  static Result<Archive> open(const FileBytes& file, std::shared_ptr<const void> owner,
                              const OpenOptions& options);

  const Model* model_ = nullptr;
  std::span<const std::byte> weights_;
  std::vector<std::span<const std::byte>> code_;
  std::shared_ptr<const TrustedKeys> trusted_;
  std::vector<Section> sections_;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<Unverified> unverified_;
};

// Constants as HoloTensor: `bytes` are a whole `.ht` file, the first `directory` of them its header
// and directory. ConstantT::tensor says which tensor a constant is.
struct Weights {
  std::span<const std::byte> bytes = {};
  uint64_t directory = 0;
};

// The bytes of an archive. `constants[i]` are the bytes of model.constants[i]; offsets and sizes
// are filled in here, equal bytes are stored once, those of constants that are in `weights` not.
// `code`: native code sections.
Result<std::vector<std::byte>> write(ModelT& model,
                                     std::span<const std::span<const std::byte>> constants,
                                     const Weights& weights = {},
                                     std::span<const std::vector<std::byte>> code = {});

// Every index and range of the plan is inside what it points into; called by open().
// `has_weights`: constants may lie in a HoloTensor section, which the session checks.
Status check(const Model& model, uint64_t constant_bytes, bool has_weights);

}  // namespace hologram::archive
