#include "holotensor/source/fragment_source.h"

#include "holotensor/format.h"
#include "holotensor/fragment.h"
#include "holotensor/reader.h"
#include "support/file.h"

namespace hologram::holotensor {
namespace {

Status check_request(const std::vector<TensorInfo>& tensors, const FragmentRequest& request) {
  if (request.tensor < tensors.size() &&
      request.fragment < tensors[request.tensor].fragment_count) {
    return {};
  }
  return fail(ErrorCode::out_of_range, "there is no fragment {} of tensor number {}",
              request.fragment, request.tensor);
}

// Sources that get one fragment at a time.
class SimpleSource : public FragmentSource {
 public:
  Status fetch(std::span<const FragmentRequest> requests, const CancelToken& cancel,
               DeliverFragment deliver) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      HOLOGRAM_CHECK(cancel.check());
      HOLOGRAM_CHECK(check_request(tensors(), requests[i]));
      deliver(i, get(requests[i]));
    }
    return {};
  }

 private:
  virtual Result<SharedBytes> get(const FragmentRequest& request) const = 0;
};

class MemorySource final : public SimpleSource {
 public:
  explicit MemorySource(std::vector<EncodedTensor> tensors) {
    for (EncodedTensor& tensor : tensors) {
      infos_.push_back(std::move(tensor.info));
      std::vector<SharedBytes>& fragments = fragments_.emplace_back();
      for (auto& bytes : tensor.fragments)
        fragments.push_back(SharedBytes::owned(std::move(bytes)));
    }
  }

  std::string name() const override { return "memory"; }
  const std::vector<TensorInfo>& tensors() const override { return infos_; }

 private:
  Result<SharedBytes> get(const FragmentRequest& request) const override {
    return fragments_[request.tensor][request.fragment];
  }

  std::vector<TensorInfo> infos_;
  std::vector<std::vector<SharedBytes>> fragments_;
};

class FileSource final : public SimpleSource {
 public:
  FileSource(std::filesystem::path path, Reader reader)
      : path_(std::move(path)), reader_(std::move(reader)) {}

  std::string name() const override { return path_.string(); }
  const std::vector<TensorInfo>& tensors() const override { return reader_.tensors(); }

 private:
  Result<SharedBytes> get(const FragmentRequest& request) const override {
    return reader_.read_fragment(tensors()[request.tensor], request.fragment);
  }

  std::filesystem::path path_;
  Reader reader_;
};

class SectionSource final : public SimpleSource {
 public:
  SectionSource(SharedBytes section, std::vector<TensorInfo> tensors)
      : section_(std::move(section)), tensors_(std::move(tensors)) {}

  std::string name() const override { return "the section"; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

 private:
  Result<SharedBytes> get(const FragmentRequest& request) const override {
    const FragmentEntry& entry = tensors_[request.tensor].fragments[request.fragment];
    const uint64_t there = section_.view.size();
    if (entry.offset > there || entry.size > there - entry.offset) {
      return fail(ErrorCode::not_found, "the file is cut off before this fragment");
    }
    return SharedBytes{section_.view.subspan(entry.offset, entry.size), section_.owner};
  }

  SharedBytes section_;
  std::vector<TensorInfo> tensors_;
};

std::filesystem::path fragment_path(const std::filesystem::path& folder, const TensorInfo& info,
                                    uint16_t fragment) {
  return folder / fmt::format("{:016x}-{:04}.htf", info.id, fragment);
}

class FolderSource final : public SimpleSource {
 public:
  FolderSource(std::filesystem::path folder, std::vector<TensorInfo> tensors)
      : folder_(std::move(folder)), tensors_(std::move(tensors)) {}

  std::string name() const override { return folder_.string(); }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

 private:
  Result<SharedBytes> get(const FragmentRequest& request) const override {
    const TensorInfo& info = tensors_[request.tensor];
    HOLOGRAM_TRY(const auto source,
                 file_byte_source(fragment_path(folder_, info, request.fragment)));
    // Its size is known: a file of another size is not read.
    HOLOGRAM_TRY(const uint64_t size, source->size());
    const uint64_t expected = info.fragments[request.fragment].size;
    if (size != expected) {
      return fail(ErrorCode::corrupt, "{} has {} bytes and not {}", source->name(), size, expected);
    }
    HOLOGRAM_TRY(auto bytes, source->read_one({0, size}));
    return SharedBytes::owned(std::move(bytes));
  }

  std::filesystem::path folder_;
  std::vector<TensorInfo> tensors_;
};

class RemoteSource final : public FragmentSource {
 public:
  RemoteSource(std::unique_ptr<ByteSource> bytes, std::vector<TensorInfo> tensors)
      : bytes_(std::move(bytes)), tensors_(std::move(tensors)) {}

  std::string name() const override { return bytes_->name(); }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  Status fetch(std::span<const FragmentRequest> requests, const CancelToken& cancel,
               DeliverFragment deliver) override {
    std::vector<ByteRange> ranges;
    for (const FragmentRequest& request : requests) {
      HOLOGRAM_CHECK(check_request(tensors_, request));
      ranges.push_back(range_of(tensors_[request.tensor], request.fragment));
    }
    return bytes_->read(ranges, cancel, [&](size_t i, Result<Bytes> bytes) {
      if (bytes) {
        deliver(i, SharedBytes::owned(*std::move(bytes)));
      } else {
        deliver(i, std::unexpected(std::move(bytes).error()));
      }
    });
  }

 private:
  // The check lets a source with mirrors tell a good copy from a bad one.
  static ByteRange range_of(const TensorInfo& info, uint16_t index) {
    const FragmentEntry& entry = info.fragments[index];
    return {entry.offset, entry.size,
            [id = info.id, hash = entry.hash, index](std::span<const std::byte> bytes) -> Status {
              HOLOGRAM_TRY(const Fragment fragment, parse_fragment(SharedBytes::borrowed(bytes)));
              if (fragment.hash == hash && fragment.index == index && fragment.tensor_id == id) {
                return {};
              }
              return fail(ErrorCode::corrupt, "a fragment of another tensor or file");
            }};
  }

  std::unique_ptr<ByteSource> bytes_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace

std::unique_ptr<FragmentSource> memory_fragments(std::vector<EncodedTensor> tensors) {
  return std::make_unique<MemorySource>(std::move(tensors));
}

Result<std::unique_ptr<FragmentSource>> file_fragments(const std::filesystem::path& path) {
  HOLOGRAM_TRY(auto reader, Reader::open(path));
  return std::make_unique<FileSource>(path, std::move(reader));
}

Result<std::unique_ptr<FragmentSource>> section_fragments(SharedBytes section) {
  HOLOGRAM_TRY(const FileHeader header, parse_header(section.view));
  const auto rest = section.view.subspan(kFileHeaderSize);
  if (rest.size() < header.directory_stored) {
    return fail(ErrorCode::corrupt, "the directory is cut off");
  }
  HOLOGRAM_TRY(auto tensors, parse_directory(header, rest.first(header.directory_stored)));
  return std::make_unique<SectionSource>(std::move(section), std::move(tensors));
}

Result<std::unique_ptr<FragmentSource>> remote_fragments(std::unique_ptr<ByteSource> bytes,
                                                         const CancelToken& cancel) {
  const auto place = [&] { return bytes->name(); };
  const ByteRange head = {0, kFileHeaderSize, [](std::span<const std::byte> got) -> Status {
                            HOLOGRAM_CHECK(parse_header(got));
                            return {};
                          }};
  HOLOGRAM_TRY(const Bytes head_bytes, in_context(bytes->read_one(head, cancel), place));
  HOLOGRAM_TRY(const FileHeader header, parse_header(head_bytes));
  HOLOGRAM_TRY(const Bytes stored,
               in_context(bytes->read_one(hashed_range(kFileHeaderSize, header.directory_stored,
                                                       header.directory_hash),
                                          cancel),
                          place));
  HOLOGRAM_TRY(auto tensors, in_context(parse_directory(header, stored), place));
  return std::make_unique<RemoteSource>(std::move(bytes), std::move(tensors));
}

Result<std::unique_ptr<FragmentSource>> folder_fragments(const std::filesystem::path& folder) {
  HOLOGRAM_TRY(auto reader, Reader::open(folder / "index.ht"));
  return std::make_unique<FolderSource>(folder, reader.tensors());
}

Status split_to_folder(const std::filesystem::path& file, const std::filesystem::path& folder) {
  HOLOGRAM_TRY(const auto reader, Reader::open(file));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::io_error, "cannot make {}: {}", folder.string(), error.message());
  }
  for (const TensorInfo& info : reader.tensors()) {
    for (uint16_t i = 0; i < info.fragment_count; ++i) {
      HOLOGRAM_TRY(const SharedBytes fragment, reader.read_fragment(info, i));
      HOLOGRAM_CHECK(write_file(fragment_path(folder, info, i), fragment.view));
    }
  }
  // Last: a folder with an index is complete.
  HOLOGRAM_TRY(const auto source, file_byte_source(file));
  HOLOGRAM_TRY(const Bytes index, source->read_one({0, reader.overhead()}));
  return write_file(folder / "index.ht", index);
}

}  // namespace hologram::holotensor
