// The bodies of BitKernels. The including file defines deposit(), extract() and count_ones().
#include <cstring>

#include "holotensor/refine/bit_kernels.h"

namespace hologram::holotensor::refine {
namespace {

inline uint64_t word_of(const uint64_t* words, size_t w, uint64_t otherwise) {
  return words ? words[w] : otherwise;
}

struct ContextWords {
  uint64_t of[kContexts];
};

inline ContextWords contexts_of(const PlaneMasks& masks, size_t w) {
  const uint64_t live = word_of(masks.live, w, ~uint64_t{0});
  const uint64_t above1 = word_of(masks.above1, w, 0), above2 = word_of(masks.above2, w, 0);
  const uint64_t above3 = word_of(masks.above3, w, 0), done = word_of(masks.done, w, 0);
  return {{live & ~above1, above1 & ~above2, above2 & ~above3, above3 & ~done}};
}

inline void append(BitSink& sink, uint64_t bits, unsigned count) {
  sink.pending |= bits << sink.fill;
  const unsigned total = sink.fill + count;
  if (total >= 64) {
    *sink.out++ = sink.pending;
    // A shift by 64 is not defined: two steps.
    sink.pending = sink.fill == 0 ? 0 : bits >> (64 - sink.fill);
    sink.fill = total - 64;
  } else {
    sink.fill = total;
  }
  sink.bits += count;
  sink.ones += count_ones(bits);
}

inline uint64_t take(BitTap& tap, unsigned count) {
  const std::byte* at = tap.bytes + (tap.position >> 3);
  const unsigned shift = tap.position & 7;
  uint64_t low;
  std::memcpy(&low, at, 8);
  const uint64_t high = static_cast<uint8_t>(at[8]);
  tap.position += count;
  return low >> shift | (high << 1) << (63 - shift);
}

void split(const uint64_t* plane, const PlaneMasks& masks, size_t begin, size_t end, bool flat,
           BitSink* sinks) {
  if (flat && !masks.live && !masks.done && sinks[0].fill == 0) {
    BitSink& sink = sinks[0];
    for (size_t w = begin; w < end; ++w) sink.ones += count_ones(plane[w]);
    std::memcpy(sink.out, plane + begin, (end - begin) * 8);
    sink.out += end - begin;
    sink.bits += (end - begin) * 64;
    return;
  }
  if (flat) {
    BitSink sink = sinks[0];
    for (size_t w = begin; w < end; ++w) {
      const uint64_t active = word_of(masks.live, w, ~uint64_t{0}) & ~word_of(masks.done, w, 0);
      append(sink, extract(plane[w], active), count_ones(active));
    }
    sinks[0] = sink;
    return;
  }
  BitSink local[kContexts] = {sinks[0], sinks[1], sinks[2], sinks[3]};
  for (size_t w = begin; w < end; ++w) {
    const ContextWords contexts = contexts_of(masks, w);
    for (unsigned k = 0; k < kContexts; ++k)
      append(local[k], extract(plane[w], contexts.of[k]), count_ones(contexts.of[k]));
  }
  for (unsigned k = 0; k < kContexts; ++k) sinks[k] = local[k];
}

void merge(uint64_t* plane, const PlaneMasks& masks, size_t begin, size_t end, bool flat,
           BitTap* taps) {
  if (flat && !masks.live && !masks.done && (taps[0].position & 7) == 0) {
    std::memcpy(plane + begin, taps[0].bytes + taps[0].position / 8, (end - begin) * 8);
    taps[0].position += (end - begin) * 64;
    return;
  }
  if (flat) {
    BitTap tap = taps[0];
    for (size_t w = begin; w < end; ++w) {
      const uint64_t active = word_of(masks.live, w, ~uint64_t{0}) & ~word_of(masks.done, w, 0);
      plane[w] = deposit(take(tap, count_ones(active)), active);
    }
    taps[0] = tap;
    return;
  }
  BitTap local[kContexts] = {taps[0], taps[1], taps[2], taps[3]};
  for (size_t w = begin; w < end; ++w) {
    const ContextWords contexts = contexts_of(masks, w);
    uint64_t bits = 0;
    for (unsigned k = 0; k < kContexts; ++k)
      bits |= deposit(take(local[k], count_ones(contexts.of[k])), contexts.of[k]);
    plane[w] = bits;
  }
  for (unsigned k = 0; k < kContexts; ++k) taps[k] = local[k];
}

uint64_t accumulate(const uint64_t* before, const uint64_t* plane, size_t begin, size_t end,
                    uint64_t* significant) {
  uint64_t ones = 0;
  for (size_t w = begin; w < end; ++w) {
    significant[w] = word_of(before, w, 0) | plane[w];
    ones += count_ones(significant[w]);
  }
  return ones;
}

uint64_t count(const uint64_t* words, size_t begin, size_t end) {
  uint64_t ones = 0;
  for (size_t w = begin; w < end; ++w) ones += count_ones(words[w]);
  return ones;
}

}  // namespace
}  // namespace hologram::holotensor::refine
