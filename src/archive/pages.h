// Pages of the constants of an archive that is a map of a file.
//
// A run reads the weights of a large model from front to back. What a step has read leaves the
// process behind it, so that a model takes the memory of a few of its layers, not of all; the
// system still has the file, and maps it again when the next run comes by. Where Linux has the file
// in pieces of 2 MiB that is a fault for each, 3 us a MiB together; so it is asked to read it in
// such. Where it has it in small pieces, as of a file just written, 16 faults a MiB take 80, more
// than to read it, and threads wait for each other: it is noticed, and the pages stay.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hologram::archive {

// Takes the whole pages of `part`, which lies in a map of a file, out of this process; they are
// there again when next used. Other memory would lose its content.
void release_pages(std::span<const std::byte> part);

// Whole pieces of 2 MiB of `part` that are not in the system's memory yet come as such, where the
// system can. Those that it shares with its neighbours do not: of a table that is looked up all 2
// MiB would stay in the process.
void prefer_large_pages(std::span<const std::byte> part);

// Faults of this process so far that needed no reading.
uint64_t page_faults();

// What is known of releasing pages of one archive's constants. Safe from any thread.
class PageRelease {
 public:
  // `constants` lie in a map of a file.
  explicit PageRelease(std::span<const std::byte> constants) : constants_(constants) {}
  // Constants of fewer bytes stay as they are.
  static constexpr size_t kLarge = 64 << 20;

  bool is_cheap() const { return dear_.load(std::memory_order_relaxed) < kOften; }
  bool holds(std::span<const std::byte> part) const;
  // A run has released so many bytes, and so many faults came while it ran.
  void note(size_t bytes, uint64_t faults);

 private:
  static constexpr int kOften = 4;

  std::span<const std::byte> constants_;
  std::atomic<int> dear_ = 0;  // how much more often it was dear than cheap
};

// The constants that one run has brought in and not let go of yet. A run's own.
class PageWindow {
 public:
  // A run begins; null: nothing is let go.
  void begin(PageRelease* pages);
  bool is_open() const { return pages_ != nullptr; }
  // It is done.
  void end();
  // A step has read this constant.
  void pass(std::span<const std::byte> part);

 private:
  void release(const std::byte* until);

  PageRelease* pages_ = nullptr;
  const std::byte *first_ = nullptr, *past_ = nullptr;
  size_t released_ = 0;
  uint64_t faults_ = 0;  // when it began
};

}  // namespace hologram::archive
