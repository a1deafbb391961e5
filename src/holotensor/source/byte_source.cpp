#include "holotensor/source/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/hash.h"

namespace hologram::holotensor {
namespace {

class MemoryByteSource final : public ByteSource {
 public:
  explicit MemoryByteSource(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::string name() const override { return "memory"; }
  Result<uint64_t> size() override { return bytes_.size(); }

  Status read(std::span<const ByteRange> ranges, const CancelToken& cancel,
              DeliverRange deliver) override {
    for (size_t i = 0; i < ranges.size(); ++i) {
      HOLOGRAM_CHECK(cancel.check());
      deliver(i, read_range(ranges[i]));
    }
    return {};
  }

 private:
  Result<Bytes> read_range(const ByteRange& range) const {
    HOLOGRAM_CHECK(check_range(range, bytes_.size()));
    const auto part = bytes_.subspan(range.offset, range.size);
    HOLOGRAM_CHECK(check_bytes(range, part));
    return Bytes(part.begin(), part.end());
  }

  std::span<const std::byte> bytes_;
};

class FileByteSource final : public ByteSource {
 public:
  FileByteSource(std::filesystem::path path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}
  ~FileByteSource() override { ::close(descriptor_); }

  std::string name() const override { return path_.string(); }

  Result<uint64_t> size() override {
    struct stat info = {};
    if (::fstat(descriptor_, &info) != 0) {
      return fail(ErrorCode::io_error, "cannot stat: {}", std::strerror(errno));
    }
    return static_cast<uint64_t>(info.st_size);
  }

  Status read(std::span<const ByteRange> ranges, const CancelToken& cancel,
              DeliverRange deliver) override {
    for (size_t i = 0; i < ranges.size(); ++i) {
      HOLOGRAM_CHECK(cancel.check());
      deliver(i, in_context(read_range(ranges[i]), [&] { return name(); }));
    }
    return {};
  }

 private:
  Result<Bytes> read_range(const ByteRange& range) {
    HOLOGRAM_TRY(const uint64_t file_size, size());
    HOLOGRAM_CHECK(check_range(range, file_size));  // before a hostile size is allocated
    Bytes bytes(range.size);
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got = ::pread(descriptor_, bytes.data() + done, bytes.size() - done,
                                  static_cast<off_t>(range.offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail(ErrorCode::io_error, "cannot read: {}", std::strerror(errno));
      if (got == 0) return fail(ErrorCode::corrupt, "the file became shorter while it was read");
      done += static_cast<size_t>(got);
    }
    HOLOGRAM_CHECK(check_bytes(range, bytes));
    return bytes;
  }

  std::filesystem::path path_;
  int descriptor_;
};

}  // namespace

Result<Bytes> ByteSource::read_one(const ByteRange& range, const CancelToken& cancel) {
  Result<Bytes> out = fail(ErrorCode::internal, "the source delivered nothing");
  HOLOGRAM_CHECK(
      read({&range, 1}, cancel, [&](size_t, Result<Bytes> bytes) { out = std::move(bytes); }));
  return out;
}

std::unique_ptr<ByteSource> memory_byte_source(std::span<const std::byte> bytes) {
  return std::make_unique<MemoryByteSource>(bytes);
}

Result<std::unique_ptr<ByteSource>> file_byte_source(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const auto code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io_error;
    return fail(code, "cannot open {}: {}", path.string(), std::strerror(errno));
  }
  return std::make_unique<FileByteSource>(path, descriptor);
}

ByteRange hashed_range(uint64_t offset, uint64_t size, uint64_t hash) {
  return {offset, size, [=](std::span<const std::byte> bytes) -> Status {
            if (hash64(bytes) == hash) return {};
            return fail(ErrorCode::corrupt, "the {} bytes at {} do not have their checksum", size,
                        offset);
          }};
}

Status check_range(const ByteRange& range, uint64_t size) {
  if (range.offset > size || range.size > size - range.offset) {
    return fail(ErrorCode::out_of_range, "bytes {} to {} do not lie in a file of {} bytes",
                range.offset, range.offset + range.size, size);
  }
  return {};
}

Status check_bytes(const ByteRange& range, std::span<const std::byte> bytes) {
  if (bytes.size() != range.size) {
    return fail(ErrorCode::corrupt, "{} bytes at {} were asked for and {} came", range.size,
                range.offset, bytes.size());
  }
  return range.check ? range.check(bytes) : Status();
}

}  // namespace hologram::holotensor
