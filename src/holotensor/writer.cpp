#include "holotensor/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "holotensor/format.h"
#include "support/file.h"
#include "support/hash.h"

namespace hologram::holotensor {
namespace {

Status write_all(int descriptor, std::span<const std::byte> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put =
        ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(ErrorCode::io_error, "writing the spool: {}", strerror(errno));
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return {};
}

Status copy(int from, uint64_t offset, uint64_t size, FileWriter& to, std::span<std::byte> buffer) {
  while (size > 0) {
    const size_t want = std::min<uint64_t>(size, buffer.size());
    const ssize_t got = ::pread(from, buffer.data(), want, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(ErrorCode::io_error, "reading the spool: {}", strerror(errno));
    HOLOGRAM_CHECK(to.write(buffer.first(static_cast<size_t>(got))));
    offset += static_cast<uint64_t>(got);
    size -= static_cast<uint64_t>(got);
  }
  return {};
}

// Calls place(tensor, fragment) in the order of the file: always the next fragment of the tensor
// that the fragments so far leave worst. So every tensor has its first fragment before any has its
// second, and a prefix of the file holds all of them about equally well. Tensors of the same id
// share the fragments of the first of them.
template <typename Place>
Status in_file_order(std::span<const TensorInfo> tensors, Place place) {
  struct Next {
    double snr_db;  // without it
    size_t fragment, tensor;
    auto operator<=>(const Next&) const = default;
  };
  std::unordered_set<uint64_t> ids;
  std::vector<Next> order;
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (!ids.insert(tensors[t].id).second) continue;
    double reached = -HUGE_VAL;
    for (size_t i = 0; i < tensors[t].fragments.size(); ++i) {
      // Without these there is nothing, even where zeros would do; fragments stay in order.
      if (i >= tensors[t].min_fragments) reached = std::max(reached, tensors[t].curve[i].snr_db());
      order.push_back({reached, i, t});
    }
  }
  std::ranges::sort(order);
  for (const Next& next : order) HOLOGRAM_CHECK(place(next.tensor, next.fragment));
  return {};
}

// The header and the directory of `tensors`, whose offsets become those in the file.
std::vector<std::byte> make_front(std::vector<TensorInfo>& tensors) {
  FileHeader header{.tensor_count = static_cast<uint32_t>(tensors.size())};
  uint64_t at = 0;
  (void)in_file_order(tensors, [&](size_t t, size_t i) -> Status {
    tensors[t].fragments[i].offset = at;
    at += tensors[t].fragments[i].size;
    return {};
  });
  std::unordered_map<uint64_t, const TensorInfo*> first;
  for (TensorInfo& info : tensors)
    info.fragments = first.try_emplace(info.id, &info).first->second->fragments;
  const auto raw = write_directory(tensors);
  const Compressed directory = compress(raw, 9);
  const uint64_t front = kFileHeaderSize + directory.bytes.size();
  for (TensorInfo& info : tensors)
    for (FragmentEntry& entry : info.fragments) entry.offset += front;
  header.file_size = front + at;
  header.directory_raw = raw.size();
  header.directory_codec = directory.codec;
  header.directory_stored = directory.bytes.size();
  header.directory_hash = hash64(directory.bytes);
  auto bytes = write_header(header);
  bytes.insert(bytes.end(), directory.bytes.begin(), directory.bytes.end());
  return bytes;
}

Status check_front(size_t front) {
  if (front <= kMaxDirectory) return {};
  return fail(ErrorCode::unsupported, "a directory of {} bytes; the limit is {}", front,
              kMaxDirectory);
}

Status check_name(std::span<const TensorInfo> tensors, std::string_view name) {
  for (const TensorInfo& info : tensors)
    if (info.name == name)
      return fail(ErrorCode::already_exists, "there is a tensor '{}' already", name);
  return {};
}

Status check_new(std::span<const TensorInfo> tensors, const EncodedTensor& tensor) {
  HOLOGRAM_CHECK(check_name(tensors, tensor.info.name));
  if (tensor.fragments.size() != tensor.info.fragments.size())
    return fail(ErrorCode::invalid_argument, "tensor '{}' has {} fragments, but {} entries",
                tensor.info.name, tensor.fragments.size(), tensor.info.fragments.size());
  return {};
}

}  // namespace

Result<Writer> Writer::create(const std::filesystem::path& path) {
  Writer writer;
  writer.path_ = path;
  std::string spool = path.string() + ".spool-XXXXXX";
  writer.spool_ = ::mkostemp(spool.data(), O_CLOEXEC);
  if (writer.spool_ < 0)
    return fail(ErrorCode::io_error, "cannot write beside {}: {}", path.string(), strerror(errno));
  ::unlink(spool.c_str());
  return writer;
}

Writer::~Writer() {
  if (spool_ >= 0) ::close(spool_);
}

Writer::Writer(Writer&& other) noexcept
    : path_(std::move(other.path_)),
      spool_(std::exchange(other.spool_, -1)),
      spooled_(other.spooled_),
      tensors_(std::move(other.tensors_)) {}

Writer& Writer::operator=(Writer&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(spool_, other.spool_);
  std::swap(spooled_, other.spooled_);
  std::swap(tensors_, other.tensors_);
  return *this;
}

bool Writer::share(TensorInfo& info) const {
  const auto same = std::ranges::find(tensors_, info.id, &TensorInfo::id);
  if (same == tensors_.end()) return false;
  info.fragments = same->fragments;
  return true;
}

Status Writer::add(EncodedTensor tensor) {
  if (spool_ < 0) return fail(ErrorCode::invalid_argument, "the file is finished");
  HOLOGRAM_CHECK(check_new(tensors_, tensor));
  if (!share(tensor.info)) {
    uint64_t at = spooled_;
    for (size_t i = 0; i < tensor.fragments.size(); ++i) {
      HOLOGRAM_CHECK(write_all(spool_, tensor.fragments[i], at));
      tensor.info.fragments[i].offset = at;
      at += tensor.fragments[i].size();
    }
    spooled_ = at;
  }
  tensors_.push_back(std::move(tensor.info));
  return {};
}

Result<TensorInfo> Writer::add(const Encoder& encoder, const TensorView& tensor) {
  if (spool_ < 0) return fail(ErrorCode::invalid_argument, "the file is finished");
  HOLOGRAM_CHECK(check_name(tensors_, tensor.name));
  uint64_t at = spooled_;
  std::vector<uint64_t> offsets;
  const auto spool = [&](std::vector<std::byte> fragment) -> Status {
    HOLOGRAM_CHECK(write_all(spool_, fragment, at));
    offsets.push_back(at);
    at += fragment.size();
    return {};
  };
  HOLOGRAM_TRY(TensorInfo info, encoder.encode(tensor, spool));
  // What is there already is written over by the next tensor.
  if (!share(info)) {
    for (size_t i = 0; i < offsets.size(); ++i) info.fragments[i].offset = offsets[i];
    spooled_ = at;
  }
  tensors_.push_back(info);
  return info;
}

Result<uint64_t> Writer::finish() {
  if (spool_ < 0) return fail(ErrorCode::invalid_argument, "the file is finished");
  std::vector<TensorInfo> placed = tensors_;
  const auto front = make_front(placed);
  HOLOGRAM_CHECK(check_front(front.size()));
  HOLOGRAM_TRY(auto file, FileWriter::create(path_));
  HOLOGRAM_CHECK(file.write(front));
  std::vector<std::byte> buffer(1 << 20);
  HOLOGRAM_CHECK(in_file_order(tensors_, [&](size_t t, size_t i) -> Status {
    const FragmentEntry& entry = tensors_[t].fragments[i];
    return copy(spool_, entry.offset, entry.size, file, buffer);
  }));
  const uint64_t size = file.position();
  HOLOGRAM_CHECK(file.commit());
  tensors_ = std::move(placed);
  ::close(std::exchange(spool_, -1));
  return size;
}

Result<std::vector<std::byte>> write_to_memory(std::vector<EncodedTensor> tensors) {
  std::vector<TensorInfo> infos;
  for (EncodedTensor& tensor : tensors) {
    HOLOGRAM_CHECK(check_new(infos, tensor));
    infos.push_back(std::move(tensor.info));
  }
  auto bytes = make_front(infos);
  HOLOGRAM_CHECK(check_front(bytes.size()));
  HOLOGRAM_CHECK(in_file_order(infos, [&](size_t t, size_t i) -> Status {
    const auto& fragment = tensors[t].fragments[i];
    bytes.insert(bytes.end(), fragment.begin(), fragment.end());
    return {};
  }));
  return bytes;
}

}  // namespace hologram::holotensor
