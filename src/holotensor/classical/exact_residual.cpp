#include "holotensor/classical/exact_residual.h"

#include <array>
#include <bit>
#include <cstdint>

#include "holotensor/byte_io.h"
#include "holotensor/classical/integer_stream.h"
#include "holotensor/values.h"

namespace hologram::holotensor {
namespace {

bool has_sign_and_magnitude(DType type) {
  return is_float(type) || (type >= DType::f8e4m3fn && type <= DType::f8e5m2fnuz);
}

// Between the bits of an element and its place in the order of values, which wraps at the width.
template <typename Word>
Word to_order(Word bits, bool sign_and_magnitude) {
  constexpr Word kSign = Word(Word{1} << (8 * sizeof(Word) - 1));
  if (!sign_and_magnitude || !(bits & kSign)) return bits;
  return Word(~Word(bits ^ kSign));  // below zero: -0 is -1, so that every pattern has its place
}
template <typename Word>
Word from_order(Word place, bool sign_and_magnitude) {
  return to_order(place, sign_and_magnitude);  // its own reverse
}

constexpr size_t kClasses = 256;
using ClassStarts = std::array<size_t, kClasses + 1>;

size_t class_of(float estimate) { return (std::bit_cast<uint32_t>(estimate) >> 23) & 0xFF; }

// Where each exponent's differences begin in the coded order.
ClassStarts class_starts(std::span<const float> estimate) {
  ClassStarts starts = {};
  for (const float value : estimate) ++starts[class_of(value) + 1];
  for (size_t i = 0; i < kClasses; ++i) starts[i + 1] += starts[i];
  return starts;
}

Result<std::vector<std::byte>> rounded(DType type, std::span<const float> estimate) {
  std::vector<std::byte> bytes(bytes_for(type, estimate.size()));
  HOLOGRAM_CHECK(from_f32(estimate, type, bytes));
  return bytes;
}

// 64-bit differences are two streams of 32 bits.
template <typename Word>
constexpr size_t kStreams = sizeof(Word) > 4 ? 2 : 1;

template <typename Word>
Result<std::vector<std::byte>> encode(DType type, std::span<const std::byte> source,
                                      std::span<const float> estimate, ThreadPool& pool) {
  using Signed = std::make_signed_t<Word>;
  const bool signed_magnitude = has_sign_and_magnitude(type);
  HOLOGRAM_TRY(const auto predicted, rounded(type, estimate));
  const ClassStarts starts = class_starts(estimate);
  std::array<std::vector<int32_t>, kStreams<Word>> streams;
  for (auto& stream : streams) stream.resize(estimate.size());
  ClassStarts next = starts;
  for (size_t i = 0; i < estimate.size(); ++i) {
    const Word have = to_order(load<Word>(predicted.data() + i * sizeof(Word)), signed_magnitude);
    const Word want = to_order(load<Word>(source.data() + i * sizeof(Word)), signed_magnitude);
    const auto difference = static_cast<int64_t>(static_cast<Signed>(Word(want - have)));
    const size_t at = next[class_of(estimate[i])]++;
    streams[0][at] = static_cast<int32_t>(difference);
    if constexpr (kStreams<Word> == 2) streams[1][at] = static_cast<int32_t>(difference >> 32);
  }
  std::vector<std::byte> out;
  for (const auto& stream : streams) {
    for (size_t c = 0; c < kClasses; ++c) {
      encode_integers(std::span(stream).subspan(starts[c], starts[c + 1] - starts[c]), out, pool);
    }
  }
  return out;
}

template <typename Word>
Status decode(DType type, std::span<const std::byte> coded, std::span<const float> estimate,
              std::span<std::byte> out, ThreadPool& pool) {
  const bool signed_magnitude = has_sign_and_magnitude(type);
  HOLOGRAM_CHECK(from_f32(estimate, type, out));
  const ClassStarts starts = class_starts(estimate);
  std::array<std::vector<int32_t>, kStreams<Word>> streams;
  ByteReader in(coded);
  for (auto& stream : streams) {
    stream.resize(estimate.size());
    for (size_t c = 0; c < kClasses; ++c) {
      HOLOGRAM_CHECK(decode_integers(
          in, std::span(stream).subspan(starts[c], starts[c + 1] - starts[c]), pool));
    }
  }
  if (!in.done()) return fail(ErrorCode::corrupt, "the residual has bytes left over");
  ClassStarts next = starts;
  for (size_t i = 0; i < estimate.size(); ++i) {
    const size_t at = next[class_of(estimate[i])]++;
    auto difference = static_cast<uint64_t>(static_cast<int64_t>(streams[0][at]));
    if constexpr (kStreams<Word> == 2) {
      difference = (difference & 0xFFFFFFFFu) | static_cast<uint64_t>(streams[1][at]) << 32;
    }
    std::byte* element = out.data() + i * sizeof(Word);
    const Word place = Word(to_order(load<Word>(element), signed_magnitude) + Word(difference));
    const Word bits = from_order(place, signed_magnitude);
    std::memcpy(element, &bits, sizeof bits);
  }
  return {};
}

Status check_type(DType type, size_t bytes, size_t elements) {
  if (!converts_to_f32(type)) {
    return fail(ErrorCode::unsupported, "no exact residual for {}", name_of(type));
  }
  if (bytes != bytes_for(type, elements)) {
    return fail(ErrorCode::shape_mismatch, "{} bytes are not {} elements of {}", bytes, elements,
                name_of(type));
  }
  return {};
}

}  // namespace

Result<std::vector<std::byte>> encode_residual(DType type, std::span<const std::byte> source,
                                               std::span<const float> estimate, ThreadPool& pool) {
  HOLOGRAM_CHECK(check_type(type, source.size(), estimate.size()));
  switch (size_of(type)) {
    case 1:
      return encode<uint8_t>(type, source, estimate, pool);
    case 2:
      return encode<uint16_t>(type, source, estimate, pool);
    case 4:
      return encode<uint32_t>(type, source, estimate, pool);
    default:
      return encode<uint64_t>(type, source, estimate, pool);
  }
}

Status decode_residual(DType type, std::span<const std::byte> coded,
                       std::span<const float> estimate, std::span<std::byte> out,
                       ThreadPool& pool) {
  HOLOGRAM_CHECK(check_type(type, out.size(), estimate.size()));
  switch (size_of(type)) {
    case 1:
      return decode<uint8_t>(type, coded, estimate, out, pool);
    case 2:
      return decode<uint16_t>(type, coded, estimate, out, pool);
    case 4:
      return decode<uint32_t>(type, coded, estimate, out, pool);
    default:
      return decode<uint64_t>(type, coded, estimate, out, pool);
  }
}

}  // namespace hologram::holotensor
