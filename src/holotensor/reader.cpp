#include "holotensor/reader.h"

#include <algorithm>

namespace hologram::holotensor {
namespace {

// Levenshtein distance, to name the tensor that was probably meant.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j)
      diagonal = std::exchange(
          row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row.back();
}

Result<DecodedTensor> decode_one(const Reader& reader, const TensorInfo& info,
                                 const QualityTarget& target, std::optional<DType> type) {
  HOLOGRAM_TRY(const Decoder decoder, reader.decode_to_quality(info, target));
  DecodedTensor decoded{
      .info = info, .quality = decoder.quality(), .type = type.value_or(info.dtype)};
  for (uint16_t i = 0; i < info.fragment_count; ++i)
    if (decoder.has(i)) decoded.bytes_read += info.fragments[i].size;
  HOLOGRAM_TRY(decoded.bytes, decoder.reconstruct(decoded.type));
  return decoded;
}

}  // namespace

Result<Reader> Reader::open(const std::filesystem::path& path) {
  HOLOGRAM_TRY(auto source, open_file(path));
  return in_context(open(std::move(source)), [&] { return path.string(); });
}

Result<Reader> Reader::open(std::shared_ptr<RandomAccess> source, uint64_t base) {
  Reader reader;
  std::byte head[kFileHeaderSize];
  HOLOGRAM_CHECK(source->read(base, head));
  HOLOGRAM_TRY(const FileHeader header, parse_header(head));
  // Before allocating: a file cut off inside its directory cannot be read at all.
  if (source->size() - base < kFileHeaderSize + header.directory_stored)
    return fail(ErrorCode::corrupt, "the file ends inside its directory");
  std::vector<std::byte> stored(header.directory_stored);
  HOLOGRAM_CHECK(source->read(base + kFileHeaderSize, stored));
  HOLOGRAM_TRY(reader.tensors_, parse_directory(header, stored));
  reader.source_ = std::move(source);
  reader.base_ = base;
  reader.file_size_ = header.file_size;
  reader.overhead_ = kFileHeaderSize + header.directory_stored;
  return reader;
}

Result<const TensorInfo*> Reader::find(std::string_view name) const {
  const TensorInfo* nearest = nullptr;
  size_t best = SIZE_MAX;
  for (const TensorInfo& info : tensors_) {
    if (info.name == name) return &info;
    if (const size_t d = distance(std::string_view(info.name).substr(0, 200), name.substr(0, 200));
        d < best) {
      best = d;
      nearest = &info;
    }
  }
  if (!nearest) return fail(ErrorCode::not_found, "no tensor '{}': the file has none", name);
  return fail(ErrorCode::not_found, "no tensor '{}' among {}; the nearest name is '{}'", name,
              tensors_.size(), nearest->name);
}

Result<SharedBytes> Reader::read_fragment(const TensorInfo& info, uint16_t index) const {
  if (index >= info.fragments.size())
    return fail(ErrorCode::out_of_range, "tensor '{}' has {} fragments, no number {}", info.name,
                info.fragments.size(), index);
  const FragmentEntry& entry = info.fragments[index];
  if (entry.offset > source_->size() || entry.size > source_->size() - entry.offset)
    return fail(ErrorCode::corrupt, "the file ends before fragment {} of tensor '{}'", index,
                info.name);
  std::vector<std::byte> bytes(entry.size);
  HOLOGRAM_CHECK(source_->read(base_ + entry.offset, bytes));
  return SharedBytes::owned(std::move(bytes));
}

Result<Decoder> Reader::decode_to_quality(const TensorInfo& info, const QualityTarget& target,
                                          ThreadPool* pool) const {
  HOLOGRAM_TRY(auto decoder, Decoder::create(info, pool));
  std::string first_fault;
  for (uint16_t i = 0; i < info.fragment_count; ++i) {
    if (decoder.can_reconstruct() && target.met_by(decoder.quality())) break;
    auto fragment = read_fragment(info, i);
    const auto added = fragment ? decoder.add_fragment(*std::move(fragment))
                                : Result<Added>(std::unexpected(std::move(fragment).error()));
    if (!added && first_fault.empty()) first_fault = added.error().message();
  }
  const std::string fault = first_fault.empty() ? "" : "; first fault: " + first_fault;
  if (!decoder.can_reconstruct())
    return fail(ErrorCode::corrupt, "tensor '{}' cannot be had: of its {} fragments {} are here{}",
                info.name, info.fragment_count, decoder.received(), fault);
  if (!target.met_by(decoder.quality()))
    return fail(
        ErrorCode::corrupt,
        "tensor '{}' reaches {:.1f} dB with {} of {} fragments, less than asked for: ask for "
        "that or less to have what is here{}",
        info.name, decoder.quality().snr_db(), decoder.received(), info.fragment_count, fault);
  return decoder;
}

Status decode_each_to_quality(const std::filesystem::path& path, const QualityTarget& target,
                              const std::function<Status(DecodedTensor)>& tensor,
                              std::optional<DType> type) {
  HOLOGRAM_TRY(const Reader reader, Reader::open(path));
  for (const TensorInfo& info : reader.tensors()) {
    HOLOGRAM_TRY(auto decoded, decode_one(reader, info, target, type));
    HOLOGRAM_CHECK(tensor(std::move(decoded)));
  }
  return {};
}

Result<DecodedTensor> decode_to_quality(const std::filesystem::path& path,
                                        const QualityTarget& target, std::string_view name,
                                        std::optional<DType> type) {
  HOLOGRAM_TRY(const Reader reader, Reader::open(path));
  if (name.empty() && reader.tensors().size() == 1)
    return decode_one(reader, reader.tensors().front(), target, type);
  if (name.empty())
    return fail(ErrorCode::invalid_argument, "{} holds {} tensors; name one of them", path.string(),
                reader.tensors().size());
  HOLOGRAM_TRY(const TensorInfo* info, reader.find(name));
  return decode_one(reader, *info, target, type);
}

}  // namespace hologram::holotensor
