#include "support/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace hologram {
namespace {

std::unexpected<Error> system_failure(const char* action, const std::filesystem::path& path) {
  const int number = errno;
  const ErrorCode code = number == ENOENT   ? ErrorCode::not_found
                         : number == EACCES ? ErrorCode::permission_denied
                                            : ErrorCode::io_error;
  return fail(code, "cannot {} '{}': {}", action, path.string(), std::strerror(number));
}

// Opens for reading and tells the size; refuses folders, which would open but never read.
Result<int> open_for_reading(const std::filesystem::path& path, size_t& size) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_failure("open", path);
  struct stat status;
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    if (S_ISDIR(status.st_mode)) errno = EISDIR;
    auto failure = system_failure("read", path);
    ::close(descriptor);
    return failure;
  }
  size = static_cast<size_t>(status.st_size);
  return descriptor;
}

template <typename Container>
Result<Container> read_whole(const std::filesystem::path& path) {
  size_t size = 0;
  HOLOGRAM_TRY(const int descriptor, open_for_reading(path, size));
  Container content;
  content.resize(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(descriptor, content.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      auto failure = system_failure("read", path);
      ::close(descriptor);
      return failure;
    }
    if (got == 0) break;  // shortened meanwhile: what is there is the file
    done += static_cast<size_t>(got);
  }
  ::close(descriptor);
  content.resize(done);
  return content;
}

}  // namespace

Result<OpenFile> OpenFile::open(const std::filesystem::path& path) {
  OpenFile file;
  file.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.descriptor_ < 0) return system_failure("open", path);
  // Half the time of fstat. Folders have an end too; no file is as large as that of most.
  constexpr off_t kImpossible = off_t{1} << 60;
  const off_t end = ::lseek(file.descriptor_, 0, SEEK_END);
  if (end >= kImpossible) errno = EISDIR;
  if (end < 0 || end >= kImpossible) return system_failure("read", path);
  file.size_ = static_cast<size_t>(end);
  return file;
}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status OpenFile::read(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got =
        ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorCode::io_error, "cannot read: {}", std::strerror(errno));
    if (got == 0) return fail(ErrorCode::io_error, "the file was shortened while it was read");
    offset += static_cast<uint64_t>(got);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return {};
}

Result<FileMap> OpenFile::map() const {
  FileMap map;
  struct stat status;
  if (::fstat(descriptor_, &status) != 0)
    return fail(ErrorCode::io_error, "cannot read: {}", std::strerror(errno));
  if (S_ISDIR(status.st_mode))
    return fail(ErrorCode::io_error, "cannot read: {}", std::strerror(EISDIR));
  if (static_cast<size_t>(status.st_size) != size_)
    return fail(ErrorCode::io_error, "the file was changed: {} bytes where there were {}",
                status.st_size, size_);
  if (size_ == 0) return map;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (address == MAP_FAILED)
    return fail(ErrorCode::io_error, "cannot map: {}", std::strerror(errno));
  map.data_ = static_cast<const std::byte*>(address);
  map.size_ = size_;
  return map;
}

Result<FileMap> FileMap::open(const std::filesystem::path& path) {
  HOLOGRAM_TRY(const OpenFile file, OpenFile::open(path));
  return in_context(file.map(), [&] { return path.string(); });  // the map keeps the file
}

FileMap::~FileMap() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<std::vector<std::byte>> read_file(const std::filesystem::path& path) {
  return read_whole<std::vector<std::byte>>(path);
}
Result<std::string> read_text_file(const std::filesystem::path& path) {
  return read_whole<std::string>(path);
}

Status write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  HOLOGRAM_TRY(FileWriter writer, FileWriter::create(path));
  HOLOGRAM_CHECK(writer.write(bytes));
  return writer.commit();
}
Status write_file(const std::filesystem::path& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text)));
}

Result<FileWriter> FileWriter::create(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter = 0;
  FileWriter writer;
  writer.path_ = path;
  writer.temporary_ = path;
  writer.temporary_ += fmt::format(".{}-{}.tmp", ::getpid(), counter.fetch_add(1));
  writer.descriptor_ =
      ::open(writer.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (writer.descriptor_ < 0) return system_failure("write", path);
  return writer;
}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      position_(other.position_),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)) {}

FileWriter& FileWriter::operator=(FileWriter&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(position_, other.position_);
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  return *this;
}

Status FileWriter::write(std::span<const std::byte> bytes) {
  HOLOGRAM_CHECK(write_at(position_, bytes));
  position_ += bytes.size();
  return {};
}

Status FileWriter::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_failure("write", path_);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return {};
}

Status FileWriter::commit() {
  if (descriptor_ < 0)
    return fail(ErrorCode::invalid_argument, "'{}' was committed already", path_.string());
  // Flushed before the rename: after a crash the name holds the old file or the whole new one.
  const bool flushed = ::fsync(descriptor_) == 0;
  if (!flushed) return system_failure("flush", path_);
  if (::close(std::exchange(descriptor_, -1)) != 0 ||
      ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    auto failure = system_failure("write", path_);
    ::unlink(temporary_.c_str());
    return failure;
  }
  return {};
}

}  // namespace hologram
