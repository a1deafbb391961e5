#include "holotensor/refine/bernoulli.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "holotensor/byte_io.h"

namespace hologram::holotensor::refine {
namespace {

constexpr unsigned kPrecision = 12;
constexpr uint32_t kTotal = 1u << kPrecision;
constexpr uint32_t kLow = 1u << 15;  // states live in [2^15, 2^31)

// 65536 / (1 + exp(-0.2 (level - 31))): written out, because files depend on every digit.
constexpr uint32_t kOneProbability[kLevels] = {
    133,   162,   198,   241,   295,   360,   439,   535,   652,   795,   968,   1179,  1434,
    1743,  2117,  2567,  3108,  3757,  4531,  5451,  6537,  7812,  9296,  11009, 12964, 15170,
    17625, 20318, 23222, 26300, 29502, 32768, 36034, 39236, 42314, 45218, 47911, 50366, 52572,
    54527, 56240, 57724, 58999, 60085, 61005, 61779, 62428, 62969, 63419, 63793, 64102, 64357,
    64568, 64741, 64884, 65001, 65097, 65176, 65241, 65295, 65338, 65374, 65403,
};

struct EncodeSymbol {
  uint32_t renormalise;  // emit 16 bits from here on
  uint32_t reciprocal;
  uint32_t bias;
  uint16_t complement;  // 4096 - frequency
  uint8_t shift;
};

struct Table {
  uint32_t slots[kTotal];  // symbol | frequency << 8 | (slot - start) << 20
  EncodeSymbol symbols[256];
};

// Frequencies of bytes by their number of ones, from 1 up, that add up to 4096 or a little less.
void frequencies_by_count(uint32_t p1, uint32_t (&by_count)[9]) {
  constexpr uint32_t kBytes[9] = {1, 8, 28, 56, 70, 56, 28, 8, 1};
  for (uint64_t total = kTotal;; --total) {
    uint32_t sum = 0;
    for (unsigned ones = 0; ones <= 8; ++ones) {
      uint64_t probability = uint64_t{1} << 32;
      for (unsigned bit = 0; bit < 8; ++bit)
        probability = (probability * (bit < ones ? p1 : 65536 - p1)) >> 16;
      const auto rounded = static_cast<uint32_t>((probability * total + (1u << 31)) >> 32);
      by_count[ones] = std::max<uint32_t>(1, rounded);
      sum += by_count[ones] * kBytes[ones];
    }
    if (sum <= kTotal) return;
  }
}

void build(uint32_t p1, Table& table) {
  uint32_t frequency[256];
  uint32_t by_count[9];
  frequencies_by_count(p1, by_count);
  uint32_t missing = kTotal;
  for (unsigned s = 0; s < 256; ++s) missing -= frequency[s] = by_count[std::popcount(s)];
  // What is left goes one by one to the likeliest bytes.
  while (missing > 0)
    for (int step = 0; step <= 8; ++step) {
      const int ones = p1 <= 32768 ? step : 8 - step;
      for (unsigned s = 0; s < 256 && missing > 0; ++s)
        if (std::popcount(s) == ones) {
          ++frequency[s];
          --missing;
        }
    }
  uint32_t start = 0;
  for (unsigned s = 0; s < 256; ++s) {
    const uint32_t f = frequency[s];
    for (uint32_t i = 0; i < f; ++i) table.slots[start + i] = s | f << 8 | i << 20;
    EncodeSymbol& symbol = table.symbols[s];
    symbol.renormalise = f << (31 - kPrecision);
    symbol.complement = static_cast<uint16_t>(kTotal - f);
    // Division by multiplication, exact for states below 2^31.
    if (f < 2) {
      symbol.reciprocal = ~0u;
      symbol.shift = 0;
      symbol.bias = start + kTotal - 1;
    } else {
      const unsigned shift = static_cast<unsigned>(std::bit_width(f - 1));
      symbol.reciprocal = static_cast<uint32_t>(((uint64_t{1} << (shift + 31)) + f - 1) / f);
      symbol.shift = static_cast<uint8_t>(shift - 1);
      symbol.bias = start;
    }
    start += f;
  }
}

const Table& table_of(uint8_t level) {
  static const auto tables = [] {
    auto made = std::make_unique<Table[]>(kLevels);
    for (unsigned i = 0; i < kLevels; ++i) build(kOneProbability[i], made[i]);
    return made;
  }();
  return tables[level];
}

// A state below kLow takes the next 16 bits. Never a branch: it would be mispredicted every few
// symbols.
inline void refill(uint32_t& state, const std::byte*& next) {
  uint32_t refilled = state << 16 | load<uint16_t>(next);
#if defined(__x86_64__)
  // Compilers make a branch of the plain choice, and twice the instructions of the arithmetic one.
  asm("cmp %[low], %[state]\n\t"
      "cmovb %[refilled], %[state]\n\t"
      "lea 2(%[next]), %q[refilled]\n\t"
      "cmovb %q[refilled], %[next]"
      : [state] "+r"(state), [next] "+r"(next), [refilled] "+r"(refilled)
      : [low] "i"(kLow)
      : "cc");
#else
  const uint32_t is_low = (state - kLow) >> 31;
  state = is_low ? refilled : state;
  next += is_low * 2;
#endif
}

}  // namespace

LevelChoice choose_level(uint64_t ones, uint64_t bits) {
  if (ones == 0) return {kAllZeros, 0};
  if (ones == bits) return {kAllOnes, 0};
  const double p = static_cast<double>(ones) / static_cast<double>(bits);
  const double logit = std::log(p / (1 - p));
  const int level =
      std::clamp(static_cast<int>(std::lround(logit / 0.2)) + 31, 0, static_cast<int>(kLevels) - 1);
  const double q = kOneProbability[level] / 65536.0;
  // Rare symbols have a frequency of at least one: 0.015 bits a weight at the ends.
  const double floor = 0.015 * std::abs(2 * q - 1);
  const double cost =
      static_cast<double>(bits) * (floor - p * std::log2(q) - (1 - p) * std::log2(1 - q));
  // A coder that saves less than this is not worth its time.
  if (cost > 0.99 * static_cast<double>(bits)) return {kRaw, static_cast<double>(bits)};
  return {static_cast<uint8_t>(level), cost};
}

void encode_section(std::span<const CodedStream> streams, std::vector<uint16_t>& scratch,
                    std::vector<std::byte>& out) {
  size_t total = 0;
  for (const CodedStream& stream : streams) total += stream.bytes.size();
  if (total == 0) return;
  // Backwards, into a buffer no symbol can overflow (16 bits each at most).
  if (scratch.size() < total + 8) scratch.resize(total + 8);
  uint16_t* const end = scratch.data() + total + 8;
  uint16_t* top = end;
  uint32_t state[kLanes];
  std::fill(state, state + kLanes, kLow);
  for (size_t s = streams.size(); s-- > 0;) {
    const Table& table = table_of(streams[s].level);
    const auto bytes = streams[s].bytes;
    for (size_t at = bytes.size(); at > 0; at -= kLanes) {
      for (unsigned lane = kLanes; lane-- > 0;) {
        const EncodeSymbol& symbol = table.symbols[static_cast<uint8_t>(bytes[at - kLanes + lane])];
        uint32_t x = state[lane];
        // Written always, kept only when needed: no branch to mispredict.
        top[-1] = static_cast<uint16_t>(x);
        const bool full = x >= symbol.renormalise;
        top -= full;
        x = full ? x >> 16 : x;
        const uint32_t quotient =
            static_cast<uint32_t>((static_cast<uint64_t>(x) * symbol.reciprocal) >> 32) >>
            symbol.shift;
        state[lane] = x + symbol.bias + quotient * symbol.complement;
      }
    }
  }
  ByteWriter writer(out);
  for (const uint32_t x : state) writer.put(x);
  writer.bytes(std::as_bytes(std::span(top, end)));
}

SectionDecoder::SectionDecoder(std::span<const std::byte> section) {
  if (section.size() < sizeof state_) {
    overrun_ = !section.empty();
    return;
  }
  empty_ = false;
  std::memcpy(state_, section.data(), sizeof state_);
  next_ = section.data() + sizeof state_;
  end_ = section.data() + section.size();
}

void SectionDecoder::decode(uint8_t level, std::span<std::byte> out) {
  if (out.empty()) return;
  if (empty_) {
    overrun_ = true;
    std::memset(out.data(), 0, out.size());
    return;
  }
  const uint32_t* slots = table_of(level).slots;
  uint32_t state[kLanes];
  std::memcpy(state, state_, sizeof state);
  const std::byte* next = next_;
  std::byte* to = out.data();
  std::byte* const to_end = to + out.size();
  while (to < to_end && end_ - next >= static_cast<ptrdiff_t>(2 * kLanes)) {
#pragma GCC unroll 8
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const uint32_t x = state[lane];
      const uint32_t slot = slots[x & (kTotal - 1)];
      to[lane] = static_cast<std::byte>(slot);
      state[lane] = ((slot >> 8) & (kTotal - 1)) * (x >> kPrecision) + (slot >> 20);
      refill(state[lane], next);
    }
    to += kLanes;
  }
  for (; to < to_end; to += kLanes) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const uint32_t slot = slots[state[lane] & (kTotal - 1)];
      to[lane] = static_cast<std::byte>(slot & 0xff);
      uint32_t y = ((slot >> 8) & (kTotal - 1)) * (state[lane] >> kPrecision) + (slot >> 20);
      if (y < kLow) {
        if (end_ - next >= 2) {
          y = y << 16 | load<uint16_t>(next);
          next += 2;
        } else {
          overrun_ = true;
        }
      }
      state[lane] = y;
    }
  }
  next_ = next;
  std::memcpy(state_, state, sizeof state);
}

bool SectionDecoder::finished() const {
  if (overrun_) return false;
  if (empty_) return true;
  return next_ == end_ &&
         std::all_of(state_, state_ + kLanes, [](uint32_t x) { return x == kLow; });
}

}  // namespace hologram::holotensor::refine
