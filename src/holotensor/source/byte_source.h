// ByteSource: byte ranges of one file, wherever it lies: in memory, on disk, or on HTTP mirrors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holotensor/source/cancel.h"
#include "support/function_ref.h"
#include "support/result.h"

namespace hologram::holotensor {

using Bytes = std::vector<std::byte>;

// Whether bytes are what they should be; an error says what is wrong.
using RangeCheck = std::function<Status(std::span<const std::byte>)>;

struct ByteRange {
  uint64_t offset = 0;
  uint64_t size = 0;
  // Where the caller can tell good bytes from bad ones. A source that has several copies (mirrors)
  // tries the next when one serves bytes that fail.
  RangeCheck check = nullptr;
};

// A range whose bytes have this XXH3-64.
ByteRange hashed_range(uint64_t offset, uint64_t size, uint64_t hash);

// Called once a range, in the order they arrive, on the thread that called read().
using DeliverRange = FunctionRef<void(size_t index, Result<Bytes> bytes)>;

// Not for two threads at once, unless an implementation says otherwise.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // For messages: a path or an address.
  virtual std::string name() const = 0;
  virtual Result<uint64_t> size() = 0;
  // Delivers every range, or an error for it, and then returns. Fails itself only when cancelled;
  // ranges not yet delivered then never are. A range that does not lie within the file, or
  // fails its check, is delivered as an error.
  virtual Status read(std::span<const ByteRange> ranges, const CancelToken& cancel,
                      DeliverRange deliver) = 0;

  // One range, as a value.
  Result<Bytes> read_one(const ByteRange& range, const CancelToken& cancel = {});
};

// Bytes that the caller keeps alive.
std::unique_ptr<ByteSource> memory_byte_source(std::span<const std::byte> bytes);

// A file on disk, read (not mapped: a file that shrinks meanwhile must be an error, not a signal).
Result<std::unique_ptr<ByteSource>> file_byte_source(const std::filesystem::path& path);

// An error unless the range lies in a file of `size` bytes.
Status check_range(const ByteRange& range, uint64_t size);
// An error unless the bytes have the range's size and, where there is one, pass its check.
Status check_bytes(const ByteRange& range, std::span<const std::byte> bytes);

}  // namespace hologram::holotensor
