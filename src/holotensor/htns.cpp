#include "holotensor/htns.h"

#include <lz4frame.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "holotensor/byte_io.h"
#include "holotensor/tensor.h"
#include "support/hash.h"

namespace hologram::holotensor {
namespace {

constexpr uint32_t kMagic = 0x534e5448;  // "HTNS"
constexpr size_t kHeader = 96, kEntry = 24;
constexpr uint32_t kZstdMagic = 0xfd2fb528, kLz4Magic = 0x184d2204;

Status decompress_frame(std::span<const std::byte> stored, std::span<std::byte> raw) {
  const uint32_t magic = stored.size() >= 4 ? load<uint32_t>(stored.data()) : 0;
  if (magic == kZstdMagic) {
    if (ZSTD_decompress(raw.data(), raw.size(), stored.data(), stored.size()) == raw.size())
      return {};
    return fail(ErrorCode::corrupt, "zstd bytes that do not decompress to {} bytes", raw.size());
  }
  if (magic != kLz4Magic)
    return fail(
        ErrorCode::unsupported,
        "compressed bytes that are neither a zstd nor an lz4 frame; HTNS v1 does not record "
        "others");
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
    return fail(ErrorCode::resource_exhausted, "no memory to decompress");
  size_t out = 0, in = 0, left = 1;
  while (left != 0 && in < stored.size()) {
    size_t produced = raw.size() - out, consumed = stored.size() - in;
    left = LZ4F_decompress(context, raw.data() + out, &produced, stored.data() + in, &consumed,
                           nullptr);
    if (LZ4F_isError(left) || (produced == 0 && consumed == 0)) break;
    out += produced;
    in += consumed;
  }
  LZ4F_freeDecompressionContext(context);
  if (left != 0 || out != raw.size() || in != stored.size())
    return fail(ErrorCode::corrupt, "lz4 bytes that do not decompress to {} bytes", raw.size());
  return {};
}

}  // namespace

bool is_htns(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && load<uint32_t>(bytes.data()) == kMagic;
}

Result<HtnsFile> parse_htns(std::span<const std::byte> bytes) {
  if (!is_htns(bytes)) return fail(ErrorCode::corrupt, "not an HTNS file");
  if (bytes.size() < kHeader)
    return fail(ErrorCode::corrupt, "{} bytes are too few for an HTNS header", bytes.size());
  ByteReader in(bytes.first(kHeader).subspan(4));
  HtnsFile file;
  if (const uint32_t version = in.get<uint32_t>(); version != 1)
    return fail(ErrorCode::unsupported, "HTNS version {}; version 1 is read", version);
  file.encoding = static_cast<HtnsEncoding>(in.get<uint8_t>());
  file.compression = in.get<uint8_t>();
  file.flags = in.get<uint16_t>();
  if ((file.flags & kHtnsHeaderChecksum) &&
      hash64(bytes.first(kHeader - 8)) != load<uint64_t>(bytes.data() + kHeader - 8))
    return fail(ErrorCode::corrupt, "the HTNS header does not match its checksum");
  file.total_fragments = in.get<uint16_t>();
  file.min_fragments = in.get<uint16_t>();
  file.original_bytes = in.get<uint64_t>();
  file.seed = in.get<uint64_t>();
  file.dtype_code = in.get<uint8_t>();
  const uint8_t rank = in.get<uint8_t>();
  if (file.encoding > HtnsEncoding::lowrank)
    return fail(ErrorCode::unsupported, "HTNS encoding {}; 0, 1 and 2 are known",
                static_cast<int>(file.encoding));
  if (rank > 4) return fail(ErrorCode::corrupt, "an HTNS tensor of rank {}; at most 4", rank);
  for (unsigned i = 0; i < 4; ++i) {
    const uint64_t dim = in.get<uint64_t>();
    if (i < rank) file.shape.push_back(static_cast<int64_t>(dim));
  }
  HOLOGRAM_TRY(file.elements, element_count(file.shape, DType::f32));
  if (file.total_fragments == 0 || file.min_fragments > file.total_fragments)
    return fail(ErrorCode::corrupt, "{} of {} fragments needed", file.min_fragments,
                file.total_fragments);
  if (file.elements == 0 || file.original_bytes % file.elements != 0 ||
      file.original_bytes / file.elements > 8)
    return fail(ErrorCode::corrupt, "{} bytes for {} elements", file.original_bytes, file.elements);
  // A file holds at least its coefficients or components: a shape it cannot fill is a lie.
  if (file.elements / 65536 > bytes.size())
    return fail(ErrorCode::corrupt, "{} elements in a file of {} bytes", file.elements,
                bytes.size());
  ByteReader index(bytes.subspan(kHeader));
  std::vector<bool> seen(file.total_fragments);
  for (unsigned i = 0; i < file.total_fragments; ++i) {
    HtnsFragment fragment;
    fragment.index = index.get<uint16_t>();
    index.get<uint16_t>();
    fragment.offset = index.get<uint32_t>();
    fragment.stored = index.get<uint32_t>();
    fragment.raw = index.get<uint32_t>();
    fragment.hash = index.get<uint64_t>();
    if (!index.ok()) return fail(ErrorCode::corrupt, "the HTNS index is cut off");
    if (fragment.index >= file.total_fragments || seen[fragment.index])
      return fail(ErrorCode::corrupt, "entry {} of the HTNS index is fragment {}", i,
                  fragment.index);
    seen[fragment.index] = true;
    file.fragments.push_back(fragment);
  }
  return file;
}

Result<std::vector<std::byte>> read_htns_fragment(const HtnsFile& file,
                                                  std::span<const std::byte> bytes, size_t entry) {
  if (entry >= file.fragments.size())
    return fail(ErrorCode::out_of_range, "entry {} of {}", entry, file.fragments.size());
  const HtnsFragment& fragment = file.fragments[entry];
  const uint64_t begin = kHeader + kEntry * uint64_t{file.total_fragments};
  if (fragment.offset < begin || fragment.offset > bytes.size() ||
      fragment.stored > bytes.size() - fragment.offset)
    return fail(ErrorCode::corrupt, "HTNS fragment {} lies outside the file", fragment.index);
  const auto stored = bytes.subspan(fragment.offset, fragment.stored);
  if ((file.flags & kHtnsFragmentChecksums) && hash64(stored) != fragment.hash)
    return fail(ErrorCode::corrupt, "HTNS fragment {} does not match its checksum", fragment.index);
  // Before allocating: neither codec grows more than this.
  if (fragment.raw / 65536 > fragment.stored)
    return fail(ErrorCode::corrupt, "HTNS fragment {} claims {} bytes", fragment.index,
                fragment.raw);
  if (file.compression == 0) {
    if (fragment.raw != fragment.stored)
      return fail(ErrorCode::corrupt, "HTNS fragment {} is not compressed but changes its size",
                  fragment.index);
    return std::vector<std::byte>(stored.begin(), stored.end());
  }
  std::vector<std::byte> raw(fragment.raw);
  HOLOGRAM_CHECK(decompress_frame(stored, raw));
  return raw;
}

}  // namespace hologram::holotensor
