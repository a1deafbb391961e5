// Unverified: the sections of an archive whose hashes are still to be checked, and once they have
// been, what came of it. Filled by the thread that opens the archive, then safe from any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "archive/layout.h"

namespace hologram::archive {

class Unverified {
 public:
  void add(SectionKind kind, std::span<const std::byte> bytes, const Hash128& hash) {
    parts_.push_back({kind, bytes, hash});
  }
  // The sections lie in a map of a file: pages that checking has brought in are let go, so that
  // only what a run reads stays in the process.
  void set_mapped() { mapped_ = true; }
  Status verify(ThreadPool& threads);

 private:
  struct Part {
    SectionKind kind;
    std::span<const std::byte> bytes;
    Hash128 hash;
  };
  std::vector<Part> parts_;
  bool mapped_ = false;
  std::atomic<bool> passed_ = false;
  std::mutex mutex_;  // guards `failed_`; held while checking, so that it is done once
  Status failed_;
};

}  // namespace hologram::archive
