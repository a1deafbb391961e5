#include "holotensor/refine/chunks.h"

#include <bit>

#include "holotensor/byte_io.h"
#include "holotensor/fragment.h"

namespace hologram::holotensor::refine {

namespace {

size_t varint_size(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

}  // namespace

size_t ChunkList::stored_size(size_t number) const {
  const size_t size = chunk(number).size();
  return size + varint_size(size);
}

size_t ChunkList::run_size(size_t first, size_t end) const {
  size_t total = varint_size(first) + varint_size(end - first);
  for (size_t i = first; i < end; ++i) total += stored_size(i);
  return total;
}

std::vector<std::byte> ChunkList::run(size_t first, size_t end) const {
  std::vector<std::byte> bytes;
  bytes.reserve(run_size(first, end) + kFragmentHeaderSize);  // which comes in front later
  ByteWriter out(bytes);
  out.varint(first);
  out.varint(end - first);
  for (size_t i = first; i < end; ++i) out.varint(chunk(i).size());
  for (size_t i = first; i < end; ++i) out.bytes(chunk(i));
  return bytes;
}

Result<ChunkRun> parse_run(std::span<const std::byte> bytes, uint64_t limit) {
  ByteReader in(bytes);
  ChunkRun run;
  run.first = in.varint();
  const uint64_t count = in.varint();
  if (!in.ok() || run.first > limit || count > limit - run.first || count > bytes.size())
    return fail(ErrorCode::corrupt, "a run of {} chunks from {}, of {}", count, run.first, limit);
  std::vector<uint64_t> sizes(count);
  for (uint64_t& size : sizes) size = in.varint();
  for (const uint64_t size : sizes) run.chunks.push_back(in.bytes(size));
  if (!in.done()) return fail(ErrorCode::corrupt, "a run whose chunks do not fill it");
  return run;
}

}  // namespace hologram::holotensor::refine
