#include "holotensor/fragment.h"

#include <lz4.h>
#include <zstd.h>

#include <cstring>

#include "holotensor/byte_io.h"
#include "support/hash.h"

namespace hologram::holotensor {
namespace {

constexpr unsigned kSizeBits = 56;
constexpr uint64_t kSizeMask = (uint64_t{1} << kSizeBits) - 1;

// XXH3 of the first 24 bytes of the header, chained into that of the payload.
uint64_t hash_of(std::span<const std::byte> header, std::span<const std::byte> payload) {
  return hash64(payload, hash64(header.first(kFragmentHeaderSize - 8)));
}

// Entropy-coded payloads do not shrink; a sample from the middle says so cheaply.
bool worth_compressing(std::span<const std::byte> raw) {
  constexpr size_t kSample = 64 << 10;
  if (raw.size() <= 2 * kSample) return true;
  const auto sample = raw.subspan(raw.size() / 2 - kSample / 2, kSample);
  std::vector<std::byte> scratch(ZSTD_compressBound(kSample));
  const size_t size =
      ZSTD_compress(scratch.data(), scratch.size(), sample.data(), sample.size(), 1);
  return !ZSTD_isError(size) && size < kSample - kSample / 50;
}

std::vector<std::byte> with_raw_size(uint64_t raw, size_t bound) {
  std::vector<std::byte> out(sizeof raw + bound);
  std::memcpy(out.data(), &raw, sizeof raw);
  return out;
}

}  // namespace

Compressed compress(std::span<const std::byte> raw, int zstd_level) {
  Compressed best{Codec::none, {}};
  size_t best_size = raw.size();
  const auto offer = [&](Codec codec, std::vector<std::byte> bytes, size_t size) {
    if (size >= best_size) return;
    bytes.resize(size);
    best_size = size;
    best = {codec, std::move(bytes)};
  };
  {
    auto bytes = with_raw_size(raw.size(), ZSTD_compressBound(raw.size()));
    const size_t size =
        ZSTD_compress(bytes.data() + 8, bytes.size() - 8, raw.data(), raw.size(), zstd_level);
    if (!ZSTD_isError(size)) offer(Codec::zstd, std::move(bytes), size + 8);
  }
  // lz4 has smaller frames: it wins on very small metadata.
  if (raw.size() <= 1 << 16) {
    auto bytes = with_raw_size(raw.size(), LZ4_compressBound(static_cast<int>(raw.size())));
    const int size = LZ4_compress_default(
        reinterpret_cast<const char*>(raw.data()), reinterpret_cast<char*>(bytes.data() + 8),
        static_cast<int>(raw.size()), static_cast<int>(bytes.size() - 8));
    if (size > 0) offer(Codec::lz4, std::move(bytes), static_cast<size_t>(size) + 8);
  }
  if (best.codec == Codec::none) best.bytes.assign(raw.begin(), raw.end());
  return best;
}

Result<std::vector<std::byte>> decompress(Codec codec, std::span<const std::byte> stored,
                                          uint64_t limit) {
  if (codec == Codec::none) {
    if (stored.size() > limit)
      return fail(ErrorCode::corrupt, "{} bytes where at most {} make sense", stored.size(), limit);
    return std::vector<std::byte>(stored.begin(), stored.end());
  }
  if (codec != Codec::zstd && codec != Codec::lz4)
    return fail(ErrorCode::corrupt, "unknown compression {}", static_cast<int>(codec));
  if (stored.size() < 8) return fail(ErrorCode::corrupt, "compressed bytes without their size");
  const uint64_t raw = load<uint64_t>(stored.data());
  stored = stored.subspan(8);
  // Neither format grows more than this; a lie must not make us allocate.
  if (raw > limit || raw / (codec == Codec::zstd ? 65536 : 256) > stored.size())
    return fail(ErrorCode::corrupt, "compressed bytes claim to grow from {} to {}", stored.size(),
                raw);
  std::vector<std::byte> out(raw);
  bool good = false;
  if (codec == Codec::zstd) {
    good = ZSTD_decompress(out.data(), out.size(), stored.data(), stored.size()) == raw;
  } else if (raw <= 1 << 16 && stored.size() <= 1 << 17) {
    good = LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()),
                               reinterpret_cast<char*>(out.data()), static_cast<int>(stored.size()),
                               static_cast<int>(raw)) == static_cast<int>(raw);
  }
  if (!good) return fail(ErrorCode::corrupt, "compressed bytes do not decompress");
  return out;
}

std::vector<std::byte> make_fragment(const TensorInfo& info, uint16_t index,
                                     std::vector<std::byte> payload) {
  Codec codec = Codec::none;
  if (worth_compressing(payload)) {
    Compressed packed = compress(payload);
    if (packed.codec != Codec::none && packed.bytes.size() + payload.size() / 50 < payload.size()) {
      codec = packed.codec;
      payload = std::move(packed.bytes);
    }
  }
  std::vector<std::byte> header;
  ByteWriter out(header);
  out.put(kFragmentMagic);
  out.put(index);
  out.put(info.fragment_count);
  out.put(info.id);
  out.put(static_cast<uint64_t>(payload.size()) | static_cast<uint64_t>(codec) << kSizeBits);
  out.put(uint64_t{0});
  const uint64_t hash = hash_of(header, payload);
  std::memcpy(header.data() + kFragmentHeaderSize - 8, &hash, 8);
  payload.insert(payload.begin(), header.begin(), header.end());
  return payload;
}

Result<uint64_t> fragment_size(std::span<const std::byte> header) {
  if (header.size() < kFragmentHeaderSize)
    return fail(ErrorCode::corrupt, "a fragment of {} bytes is shorter than its header",
                header.size());
  if (load<uint32_t>(header.data()) != kFragmentMagic)
    return fail(ErrorCode::corrupt, "not a fragment: it does not begin with HTFR");
  return kFragmentHeaderSize + (load<uint64_t>(header.data() + 16) & kSizeMask);
}

uint64_t fragment_hash(std::span<const std::byte> fragment) {
  return load<uint64_t>(fragment.data() + kFragmentHeaderSize - 8);
}

Result<Fragment> parse_fragment(SharedBytes bytes) {
  HOLOGRAM_TRY(const uint64_t size, fragment_size(bytes.view));
  if (size != bytes.view.size())
    return fail(ErrorCode::corrupt, "a fragment says it has {} bytes, but there are {}", size,
                bytes.view.size());
  const std::byte* header = bytes.view.data();
  Fragment fragment;
  fragment.index = load<uint16_t>(header + 4);
  fragment.count = load<uint16_t>(header + 6);
  fragment.tensor_id = load<uint64_t>(header + 8);
  fragment.codec = static_cast<Codec>(load<uint64_t>(header + 16) >> kSizeBits);
  fragment.hash = load<uint64_t>(header + 24);
  fragment.payload = {bytes.view.subspan(kFragmentHeaderSize), std::move(bytes.owner)};
  if (hash_of({header, kFragmentHeaderSize}, fragment.payload.view) != fragment.hash)
    return fail(ErrorCode::corrupt, "fragment {} does not match its checksum", fragment.index);
  return fragment;
}

Result<SharedBytes> payload_of(const Fragment& fragment, uint64_t limit) {
  if (fragment.codec == Codec::none) return fragment.payload;
  HOLOGRAM_TRY(auto raw, decompress(fragment.codec, fragment.payload.view, limit));
  return SharedBytes::owned(std::move(raw));
}

}  // namespace hologram::holotensor
