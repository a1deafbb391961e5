#include "holotensor/random_access.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hologram::holotensor {
namespace {

Status past_end(uint64_t offset, uint64_t size, uint64_t end) {
  return fail(ErrorCode::out_of_range, "reading {} bytes at {} passes the end at {}", size, offset,
              end);
}

class FileAccess final : public RandomAccess {
 public:
  FileAccess(int descriptor, uint64_t size) : descriptor_(descriptor), size_(size) {}
  ~FileAccess() override { ::close(descriptor_); }
  uint64_t size() const override { return size_; }

  Status read(uint64_t offset, std::span<std::byte> out) override {
    if (offset > size_ || out.size() > size_ - offset) return past_end(offset, out.size(), size_);
    while (!out.empty()) {
      const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail(ErrorCode::io_error, "reading at {}: {}", offset, strerror(errno));
      if (got == 0) return past_end(offset, out.size(), offset);
      out = out.subspan(static_cast<size_t>(got));
      offset += static_cast<uint64_t>(got);
    }
    return {};
  }

 private:
  int descriptor_;
  uint64_t size_;
};

class MemoryAccess final : public RandomAccess {
 public:
  explicit MemoryAccess(SharedBytes bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.view.size(); }

  Status read(uint64_t offset, std::span<std::byte> out) override {
    if (offset > size() || out.size() > size() - offset)
      return past_end(offset, out.size(), size());
    if (!out.empty()) std::memcpy(out.data(), bytes_.view.data() + offset, out.size());
    return {};
  }

 private:
  SharedBytes bytes_;
};

}  // namespace

Result<std::shared_ptr<RandomAccess>> open_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return fail(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io_error, "cannot open {}: {}",
                path.string(), strerror(errno));
  struct stat status;
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return fail(ErrorCode::io_error, "{} is not a regular file", path.string());
  }
  return std::make_shared<FileAccess>(descriptor, static_cast<uint64_t>(status.st_size));
}

std::shared_ptr<RandomAccess> memory_source(SharedBytes bytes) {
  return std::make_shared<MemoryAccess>(std::move(bytes));
}

}  // namespace hologram::holotensor
