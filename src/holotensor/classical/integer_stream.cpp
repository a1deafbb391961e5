#include "holotensor/classical/integer_stream.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <optional>

#include "holotensor/classical/byte_coder.h"

namespace hologram::holotensor {
namespace {

constexpr unsigned kMaxPlanes = 5;

// Leaves numbers of about 16 in the planes: enough for an entropy coder of bytes to see the shape
// of their distribution, few enough for one byte.
unsigned random_low_bits(std::span<const int32_t> values) {
  double sum = 0;
  for (const int32_t value : values) sum += std::abs(static_cast<double>(value));
  const double mean = sum / static_cast<double>(values.size());
  return mean < 32 ? 0 : std::min(31u, static_cast<unsigned>(std::log2(mean)) - 4);
}

void pack_low_bits(std::span<const int32_t> values, unsigned bits, ByteWriter& out) {
  uint64_t pending = 0;
  unsigned filled = 0;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (const int32_t value : values) {
    pending |= (static_cast<uint64_t>(value) & mask) << filled;
    filled += bits;
    if (filled >= 32) {
      out.put(static_cast<uint32_t>(pending));
      pending >>= 32;
      filled -= 32;
    }
  }
  for (; filled > 0; filled -= std::min(filled, 8u)) {
    out.put(static_cast<uint8_t>(pending));
    pending >>= 8;
  }
}

void unpack_low_bits(std::span<const std::byte> from, unsigned bits, std::span<int32_t> values) {
  uint64_t pending = 0;
  unsigned filled = 0;
  size_t at = 0;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (int32_t& value : values) {
    while (filled < bits) {
      if (from.size() - at >= 4) {
        pending |= static_cast<uint64_t>(load<uint32_t>(from.data() + at)) << filled;
        at += 4, filled += 32;
      } else {
        pending |= static_cast<uint64_t>(from[at++]) << filled;
        filled += 8;
      }
    }
    value = static_cast<int32_t>(pending & mask);
    pending >>= bits;
    filled -= bits;
  }
}

std::vector<std::byte> encode_block(std::span<const int32_t> values) {
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  out.put(uint32_t{0});  // the size, known last
  const unsigned low_bits = random_low_bits(values);
  out.put(static_cast<uint8_t>(low_bits));
  std::vector<int64_t> rest(values.size());
  for (size_t i = 0; i < values.size(); ++i) rest[i] = values[i] >> low_bits;
  std::vector<std::byte> planes, plane(values.size());
  ByteWriter coded(planes);
  uint8_t plane_count = 0;
  while (std::ranges::any_of(rest, [](int64_t v) { return v != 0; })) {
    for (size_t i = 0; i < rest.size(); ++i) {
      const auto low = static_cast<int8_t>(rest[i]);
      plane[i] = static_cast<std::byte>(low);
      rest[i] = (rest[i] - low) >> 8;
    }
    encode_bytes(plane, coded);
    ++plane_count;
  }
  out.put(plane_count);
  if (low_bits > 0) pack_low_bits(values, low_bits, out);
  out.bytes(planes);
  const auto size = static_cast<uint32_t>(bytes.size() - 4);
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes;
}

Status decode_block(std::span<const std::byte> bytes, std::span<int32_t> values) {
  ByteReader in(bytes);
  const unsigned low_bits = in.get<uint8_t>();
  const unsigned plane_count = in.get<uint8_t>();
  if (!in.ok() || low_bits > 31 || plane_count > kMaxPlanes) {
    return fail(ErrorCode::corrupt, "a block of integers has an impossible head");
  }
  const auto packed = in.bytes((values.size() * low_bits + 7) / 8);
  if (!in.ok()) return fail(ErrorCode::corrupt, "a block of integers ends early");
  if (low_bits > 0) {
    unpack_low_bits(packed, low_bits, values);
  } else {
    std::ranges::fill(values, 0);
  }
  std::vector<std::byte> raw(values.size());
  for (unsigned plane = 0; plane < plane_count; ++plane) {
    HOLOGRAM_CHECK(decode_bytes(in, raw));
    // Wraps by intent: what a lying block adds up to is some number, not undefined.
    const unsigned shift = 8 * plane + low_bits;
    for (size_t i = 0; i < values.size() && shift < 64; ++i) {
      const auto part = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(raw[i])));
      values[i] = static_cast<int32_t>(static_cast<uint32_t>(values[i]) +
                                       static_cast<uint32_t>(part << shift));
    }
  }
  return in.done() ? Status() : fail(ErrorCode::corrupt, "a block of integers has bytes left over");
}

size_t block_count(size_t count) { return (count + kIntegerBlock - 1) / kIntegerBlock; }

}  // namespace

void encode_integers(std::span<const int32_t> values, std::vector<std::byte>& out,
                     ThreadPool& pool) {
  std::vector<std::vector<std::byte>> blocks(block_count(values.size()));
  pool.parallel_for(
      blocks.size(), 1,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          const size_t first = i * kIntegerBlock;
          blocks[i] =
              encode_block(values.subspan(first, std::min(kIntegerBlock, values.size() - first)));
        }
      },
      Schedule::dynamic);
  for (const auto& block : blocks) out.insert(out.end(), block.begin(), block.end());
}

Status decode_integers(ByteReader& in, std::span<int32_t> values, ThreadPool& pool) {
  if (in.rest().size() < least_integer_bytes(values.size())) {
    return fail(ErrorCode::corrupt, "{} bytes cannot hold {} integers", in.rest().size(),
                values.size());
  }
  std::vector<std::span<const std::byte>> blocks(block_count(values.size()));
  for (auto& block : blocks) block = in.bytes(in.get<uint32_t>());
  if (!in.ok()) return fail(ErrorCode::corrupt, "a stream of integers ends early");
  std::mutex mutex;
  std::optional<Error> first_error;
  pool.parallel_for(
      blocks.size(), 1,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          const size_t first = i * kIntegerBlock;
          const Status good = decode_block(
              blocks[i], values.subspan(first, std::min(kIntegerBlock, values.size() - first)));
          if (good) continue;
          std::lock_guard lock(mutex);
          if (!first_error) first_error = good.error();
        }
      },
      Schedule::dynamic);
  if (first_error) return std::unexpected(std::move(*first_error));
  return {};
}

}  // namespace hologram::holotensor
