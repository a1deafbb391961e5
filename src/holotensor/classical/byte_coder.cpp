#include "holotensor/classical/byte_coder.h"

#include <algorithm>
#include <array>

#include "holotensor/fragment.h"

namespace hologram::holotensor {
namespace {

enum Mode : uint8_t { kRaw = 0, kConstant = 1, kRans = 2, kCompressed = 3 };

constexpr unsigned kProbabilityBits = 12;
constexpr uint32_t kTotal = 1 << kProbabilityBits;
constexpr uint32_t kLowest = 1 << 16;  // states live in [2^16, 2^32); 16 bits go out at a time
constexpr size_t kLanes = 4;

struct Table {
  std::array<uint32_t, 256> frequency = {};
  std::array<uint32_t, 257> start = {};

  bool finish() {
    for (size_t s = 0; s < 256; ++s) start[s + 1] = start[s] + frequency[s];
    return start[256] == kTotal;
  }
};

// Counts scaled to kTotal, every byte that occurs getting at least 1; at least two must occur.
Table table_for(std::span<const uint32_t, 256> counts, size_t total) {
  Table table;
  uint32_t sum = 0;
  size_t largest = 0;
  for (size_t s = 0; s < 256; ++s) {
    if (counts[s] == 0) continue;
    const uint64_t scaled = (uint64_t{counts[s]} * kTotal + total / 2) / total;
    table.frequency[s] = std::max<uint32_t>(1, static_cast<uint32_t>(scaled));
    sum += table.frequency[s];
    if (table.frequency[s] > table.frequency[largest]) largest = s;
  }
  // What rounding left over goes to the most frequent, which minds it least.
  while (sum > kTotal) {
    const uint32_t take = std::min(sum - kTotal, table.frequency[largest] / 2);
    table.frequency[largest] -= take;
    sum -= take;
    largest =
        static_cast<size_t>(std::ranges::max_element(table.frequency) - table.frequency.begin());
  }
  table.frequency[largest] += kTotal - sum;
  table.finish();
  return table;
}

// Differences of the bytes that occur, and their frequencies; ends with a difference of 0.
void write_table(const Table& table, ByteWriter& out) {
  size_t previous = 0;
  for (size_t s = 0; s < 256; ++s) {
    if (table.frequency[s] == 0) continue;
    out.varint(s + 1 - previous);
    out.varint(table.frequency[s]);
    previous = s + 1;
  }
  out.varint(0);
}

bool read_table(ByteReader& in, Table& table) {
  uint64_t next = 0;
  for (;;) {
    const uint64_t difference = in.varint();
    if (!in.ok()) return false;
    if (difference == 0) return table.finish();
    next += difference;
    const uint64_t frequency = in.varint();
    if (!in.ok() || difference > 256 || next > 256 || frequency == 0 || frequency >= kTotal) {
      return false;
    }
    table.frequency[next - 1] = static_cast<uint32_t>(frequency);
  }
}

std::vector<std::byte> encode_rans(std::span<const std::byte> bytes, const Table& table) {
  std::vector<std::byte> result;
  ByteWriter out(result);
  write_table(table, out);
  // Encoded from the last byte to the first, so that the decoder goes forwards.
  std::vector<uint16_t> words;
  words.reserve(bytes.size() / 2 + 16);
  std::array<uint32_t, kLanes> states;
  states.fill(kLowest);
  for (size_t i = bytes.size(); i-- > 0;) {
    uint32_t& state = states[i % kLanes];
    const auto symbol = static_cast<size_t>(bytes[i]);
    const uint32_t frequency = table.frequency[symbol];
    if (state >= uint64_t{frequency} << (32 - kProbabilityBits)) {
      words.push_back(static_cast<uint16_t>(state));
      state >>= 16;
    }
    state = (state / frequency << kProbabilityBits) + state % frequency + table.start[symbol];
  }
  for (const uint32_t state : states) out.put(state);
  out.varint(words.size());
  std::ranges::reverse(words);
  out.bytes(std::as_bytes(std::span(words)));
  return result;
}

Status decode_rans(ByteReader& in, std::span<std::byte> out) {
  Table table;
  if (!read_table(in, table)) return fail(ErrorCode::corrupt, "a table of frequencies is damaged");
  std::array<uint8_t, kTotal> symbol_at;
  for (size_t s = 0; s < 256; ++s) {
    std::fill(symbol_at.begin() + table.start[s], symbol_at.begin() + table.start[s + 1],
              static_cast<uint8_t>(s));
  }
  std::array<uint32_t, kLanes> states;
  for (uint32_t& state : states) state = in.get<uint32_t>();
  const uint64_t word_count = in.varint();
  if (word_count > in.rest().size() / 2) return fail(ErrorCode::corrupt, "coded bytes end early");
  const auto words = in.bytes(word_count * 2);
  const std::byte* next = words.data();
  const std::byte* const end = next + words.size();
  for (size_t i = 0; i < out.size(); ++i) {
    uint32_t& state = states[i % kLanes];
    const uint32_t slot = state & (kTotal - 1);
    const uint8_t symbol = symbol_at[slot];
    out[i] = static_cast<std::byte>(symbol);
    state = table.frequency[symbol] * (state >> kProbabilityBits) + slot - table.start[symbol];
    if (state < kLowest) {
      if (next == end) return fail(ErrorCode::corrupt, "coded bytes end early");
      state = state << 16 | load<uint16_t>(next);
      next += 2;
    }
  }
  const bool complete =
      next == end && std::ranges::all_of(states, [](uint32_t state) { return state == kLowest; });
  return complete ? Status() : fail(ErrorCode::corrupt, "coded bytes do not come out even");
}

}  // namespace

void encode_bytes(std::span<const std::byte> bytes, ByteWriter& out) {
  std::array<uint32_t, 256> counts = {};
  for (const std::byte byte : bytes) ++counts[static_cast<size_t>(byte)];
  const auto used = std::ranges::count_if(counts, [](uint32_t count) { return count > 0; });
  if (used == 1) {
    out.put(static_cast<uint8_t>(kConstant));
    out.put(bytes[0]);
    return;
  }
  Mode mode = kRaw;
  std::vector<std::byte> best;
  if (used > 1) {
    best = encode_rans(bytes, table_for(counts, bytes.size()));
    if (best.size() < bytes.size()) mode = kRans;
  }
  // Only what is far from random can have structure worth looking for.
  if (mode == kRans && best.size() < bytes.size() / 3) {
    const Compressed compressed = compress(bytes, 3);
    if (compressed.codec != Codec::none && compressed.bytes.size() + 8 < best.size()) {
      out.put(static_cast<uint8_t>(kCompressed));
      out.put(static_cast<uint8_t>(compressed.codec));
      out.varint(compressed.bytes.size());
      out.bytes(compressed.bytes);
      return;
    }
  }
  out.put(static_cast<uint8_t>(mode));
  out.bytes(mode == kRans ? std::span<const std::byte>(best) : bytes);
}

Status decode_bytes(ByteReader& in, std::span<std::byte> out) {
  switch (in.get<uint8_t>()) {
    case kConstant: {
      std::ranges::fill(out, in.get<std::byte>());
      break;
    }
    case kRans:
      HOLOGRAM_CHECK(decode_rans(in, out));
      break;
    case kCompressed: {
      const auto codec = static_cast<Codec>(in.get<uint8_t>());
      HOLOGRAM_TRY(const auto raw, decompress(codec, in.bytes(in.varint()), out.size()));
      if (raw.size() != out.size()) return fail(ErrorCode::corrupt, "coded bytes end early");
      std::ranges::copy(raw, out.begin());
      break;
    }
    case kRaw: {
      const auto raw = in.bytes(out.size());
      if (in.ok()) std::ranges::copy(raw, out.begin());
      break;
    }
    default:
      return fail(ErrorCode::corrupt, "bytes are coded in an unknown way");
  }
  return in.ok() ? Status() : fail(ErrorCode::corrupt, "coded bytes end early");
}

}  // namespace hologram::holotensor
