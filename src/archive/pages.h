// Pages of the constants of an archive that is a map of a file.
//
// A run reads the weights of a large model from front to back. What a step has read leaves the
// process behind it, so that a model takes the memory of a few of its layers, not of all; the
// system still has the file, and maps it again when the next run comes by. Linux maps files in
// pieces of 2 MiB where it can, and then this costs some 10 us a MiB. Where it has the file in
// small pieces it costs ten times that: it is noticed, and the pages stay.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hologram::archive {

// Takes the whole pages of `part`, which lies in a map of a file, out of this process; they are
// there again when next used. Other memory would lose its content.
void release_pages(std::span<const std::byte> part);

// What is known of releasing pages of one archive's constants. Safe from any thread.
class PageRelease {
 public:
  // `constants` lie in a map of a file.
  explicit PageRelease(std::span<const std::byte> constants) : constants_(constants) {}
  // Constants of fewer bytes stay as they are.
  static constexpr size_t kLarge = 64 << 20;

  bool is_cheap() const { return dear_.load(std::memory_order_relaxed) < kOften; }
  bool holds(std::span<const std::byte> part) const;
  void release(std::span<const std::byte> part);
  // To release so many bytes took so long.
  void note(size_t bytes, double microseconds);

 private:
  static constexpr int kOften = 4;

  std::span<const std::byte> constants_;
  std::atomic<int> dear_ = 0;  // how much more often it was dear than cheap
};

// The constants that one run has brought in and not let go of yet. A run's own.
class PageWindow {
 public:
  // A run begins; null: nothing is let go.
  void begin(PageRelease* pages) { pages_ = pages; }
  bool is_open() const { return pages_ != nullptr; }
  // A step has read this constant.
  void pass(std::span<const std::byte> part);

 private:
  PageRelease* pages_ = nullptr;
  const std::byte *first_ = nullptr, *past_ = nullptr;
};

}  // namespace hologram::archive
