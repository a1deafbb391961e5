#include "holotensor/format.h"

#include <cmath>
#include <unordered_set>

#include "holotensor/byte_io.h"
#include "holotensor/htns.h"
#include "support/hash.h"

namespace hologram::holotensor {
namespace {

// No scheme stores a tensor in fewer bytes than this fraction, so a directory that claims it lies,
// and must not make a reader allocate.
constexpr uint64_t kMaxRatio = 65536;

void write_tensor(ByteWriter& out, const TensorInfo& info) {
  out.varint(info.name.size());
  out.bytes(info.name);
  out.put(static_cast<uint8_t>(info.dtype));
  out.varint(info.shape.size());
  for (const int64_t dim : info.shape) out.varint(static_cast<uint64_t>(dim));
  out.put(static_cast<uint8_t>(info.scheme));
  out.put(static_cast<uint8_t>(info.distribution));
  out.varint(info.fragment_count);
  out.varint(info.min_fragments);
  out.varint(info.seed);
  out.put(info.content_hash);
  out.varint(info.parameters.size());
  out.bytes(info.parameters);
  size_t inexact = 0;
  for (const Quality& quality : info.curve) {
    out.put(static_cast<float>(stored_error(quality.nmse)));
    out.put(static_cast<float>(stored_error(quality.max_error)));
    inexact += !quality.exact;
  }
  out.varint(inexact);
  for (const FragmentEntry& entry : info.fragments) {
    out.varint(entry.offset);
    out.varint(entry.size);
    out.put(entry.hash);
  }
}

Result<TensorInfo> parse_tensor(ByteReader& in, const FileHeader& header) {
  TensorInfo info;
  const auto name = in.bytes(in.varint());
  if (name.size() > kMaxName) return fail(ErrorCode::corrupt, "a name of {} bytes", name.size());
  info.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  const auto bad = [&](std::string_view what) {
    return fail(ErrorCode::corrupt, "tensor '{}': {}", info.name, what);
  };
  const uint8_t type = in.get<uint8_t>();
  const uint64_t rank = in.varint();
  if (rank > kMaxRank) return bad("an impossible rank");
  info.shape.resize(rank);
  for (int64_t& dim : info.shape) dim = static_cast<int64_t>(in.varint());
  info.scheme = static_cast<SchemeId>(in.get<uint8_t>());
  info.distribution = static_cast<Distribution>(in.get<uint8_t>());
  const uint64_t fragments = in.varint(), least = in.varint();
  info.seed = in.varint();
  info.content_hash = in.get<uint64_t>();
  const auto parameters = in.bytes(in.varint());
  if (!in.ok()) return bad("the directory ends inside it");
  if (fragments == 0 || fragments > kMaxFragments) return bad("an impossible number of fragments");
  if (least == 0 || least > fragments) return bad("an impossible number of needed fragments");
  if (parameters.size() > kMaxParameters) return bad("too many parameters");
  info.fragment_count = static_cast<uint16_t>(fragments);
  info.min_fragments = static_cast<uint16_t>(least);
  info.parameters.assign(parameters.begin(), parameters.end());
  const auto known_type = dtype_from_code(type);
  if (!known_type) return bad("unknown element type");
  info.dtype = *known_type;
  const auto elements = element_count(info.shape, info.dtype);
  if (!elements) return fail(Error(elements.error()), info.name);
  if (info.distribution > Distribution::any) return bad("unknown distribution");
  info.id = identity_of(info);

  info.curve.resize(info.fragment_count + size_t{1});
  for (Quality& quality : info.curve) {
    quality.nmse = in.get<float>();
    quality.max_error = in.get<float>();
    if (!(quality.nmse >= 0) || !(quality.max_error >= 0))
      return bad("a quality that is no number");
  }
  const uint64_t inexact = in.varint();
  if (inexact > info.curve.size()) return bad("more points that are not exact than points");
  for (size_t k = inexact; k < info.curve.size(); ++k) info.curve[k].exact = true;
  info.fragments.resize(info.fragment_count);
  const uint64_t begin = kFileHeaderSize + header.directory_stored;
  uint64_t stored = 0;
  for (FragmentEntry& entry : info.fragments) {
    entry.offset = in.varint();
    entry.size = in.varint();
    entry.hash = in.get<uint64_t>();
    if (entry.offset > header.file_size - begin ||
        entry.size > header.file_size - begin - entry.offset || entry.size < kFragmentHeaderSize)
      return bad("a fragment that lies outside the file");
    entry.offset += begin;
    stored += entry.size;
  }
  if (!in.ok()) return bad("the directory ends inside it");
  if (info.source_bytes() / kMaxRatio > stored) return bad("a size that its fragments cannot hold");
  return info;
}

}  // namespace

std::vector<std::byte> write_header(const FileHeader& header) {
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  out.put(kFileMagic);
  out.put(kFileVersion);
  out.put(header.file_size);
  out.put(header.directory_stored);
  out.put(header.directory_raw);
  out.put(header.tensor_count);
  out.put(static_cast<uint32_t>(header.directory_codec));
  out.put(header.directory_hash);
  out.put(uint64_t{0});
  out.put(hash64(bytes));
  return bytes;
}

Result<FileHeader> parse_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kFileHeaderSize)
    return fail(ErrorCode::corrupt, "{} bytes are too few for a HoloTensor header of {}",
                bytes.size(), kFileHeaderSize);
  ByteReader in(bytes.first(kFileHeaderSize));
  const uint32_t magic = in.get<uint32_t>();
  if (is_htns(bytes))
    return fail(ErrorCode::unsupported,
                "a file of the older HTNS format: `hologram decode` or decode_htns() reads it, and "
                "encoding its tensor again makes a .ht file");
  if (magic != kFileMagic)
    return fail(ErrorCode::corrupt, "not a HoloTensor file: it does not begin with HOLT");
  const uint32_t version = in.get<uint32_t>();
  if (hash64(bytes.first(kFileHeaderSize - 8)) !=
      load<uint64_t>(bytes.data() + kFileHeaderSize - 8))
    return fail(ErrorCode::corrupt, "the header does not match its checksum");
  if (version != kFileVersion)
    return fail(ErrorCode::unsupported, "HoloTensor version {}; this build reads version {}",
                version, kFileVersion);
  FileHeader header;
  header.file_size = in.get<uint64_t>();
  header.directory_stored = in.get<uint64_t>();
  header.directory_raw = in.get<uint64_t>();
  header.tensor_count = in.get<uint32_t>();
  const uint32_t codec = in.get<uint32_t>();
  header.directory_hash = in.get<uint64_t>();
  if (codec > static_cast<uint32_t>(Codec::lz4))
    return fail(ErrorCode::corrupt, "unknown directory compression {}", codec);
  header.directory_codec = static_cast<Codec>(codec);
  if (header.directory_raw > kMaxDirectory || header.directory_stored > kMaxDirectory ||
      header.file_size < kFileHeaderSize + header.directory_stored)
    return fail(ErrorCode::corrupt, "a directory of {} bytes in a file of {}",
                header.directory_stored, header.file_size);
  return header;
}

std::vector<std::byte> write_directory(std::span<const TensorInfo> tensors) {
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  for (const TensorInfo& info : tensors) write_tensor(out, info);
  return bytes;
}

Result<std::vector<TensorInfo>> parse_directory(const FileHeader& header,
                                                std::span<const std::byte> stored) {
  if (stored.size() != header.directory_stored || hash64(stored) != header.directory_hash)
    return fail(ErrorCode::corrupt, "the directory does not match its checksum");
  HOLOGRAM_TRY(const auto raw, decompress(header.directory_codec, stored, header.directory_raw));
  if (raw.size() != header.directory_raw)
    return fail(ErrorCode::corrupt, "the directory has {} bytes, not {}", raw.size(),
                header.directory_raw);
  ByteReader in(raw);
  std::vector<TensorInfo> tensors;
  std::unordered_set<std::string_view> names;
  for (uint32_t i = 0; i < header.tensor_count; ++i) {
    HOLOGRAM_TRY(auto info, parse_tensor(in, header));
    tensors.push_back(std::move(info));
  }
  for (const TensorInfo& info : tensors)
    if (!names.insert(info.name).second)
      return fail(ErrorCode::corrupt, "two tensors are named '{}'", info.name);
  if (!in.done()) return fail(ErrorCode::corrupt, "the directory is longer than its tensors");
  return tensors;
}

}  // namespace hologram::holotensor
