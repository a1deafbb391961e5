#include "runtime/bundle/kernel_bundle.h"

#include <algorithm>
#include <cstring>

#include "isa/binary.h"
#include "support/aligned.h"

namespace hologram::runtime {
namespace {

constexpr char kMagic[4] = {'H', 'K', 'B', 'N'};

struct Header {
  char magic[4];
  uint32_t version;
  uint32_t kernels;
  uint32_t natives;
  uint64_t total;
  uint8_t zeros[40];
};
struct KernelRecord {
  uint32_t name_offset, name_size;
  uint64_t isa_offset, isa_size;
  uint32_t first_native, native_count;
};
struct NativeRecord {
  uint32_t level_offset, level_size;
  uint32_t abi_version, zero;
  uint64_t code_offset, code_size, entry_offset, scratch_fixed, scratch_per_thread, words_offset;
};
static_assert(sizeof(Header) == 64 && sizeof(KernelRecord) == 32 && sizeof(NativeRecord) == 64);

// Records are read by copying: the bytes need not be aligned.
template <typename T>
T record(std::span<const std::byte> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}
KernelRecord kernel_record(std::span<const std::byte> bytes, size_t index) {
  return record<KernelRecord>(bytes, sizeof(Header) + index * sizeof(KernelRecord));
}
NativeRecord native_record(std::span<const std::byte> bytes, uint32_t kernels, size_t index) {
  return record<NativeRecord>(
      bytes, sizeof(Header) + kernels * sizeof(KernelRecord) + index * sizeof(NativeRecord));
}
std::string_view text(std::span<const std::byte> bytes, uint64_t offset, uint64_t size) {
  return {reinterpret_cast<const char*>(bytes.data()) + offset, size};
}

template <typename T>
void append(std::vector<std::byte>& to, const T& value) {
  to.resize(to.size() + sizeof(T));
  std::memcpy(to.data() + to.size() - sizeof(T), &value, sizeof(T));
}

}  // namespace

Result<KernelBundle> KernelBundle::open(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Header) || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0)
    return fail(ErrorCode::corrupt, "{} bytes that are no bundle of kernels", bytes.size());
  const auto header = record<Header>(bytes, 0);
  if (header.version != kBundleVersion)
    return fail(ErrorCode::unsupported, "a bundle of kernels of version {}; this build reads {}",
                header.version, kBundleVersion);
  const uint64_t tables = sizeof(Header) + uint64_t{header.kernels} * sizeof(KernelRecord) +
                          uint64_t{header.natives} * sizeof(NativeRecord);
  if (header.total != bytes.size() || tables > bytes.size())
    return fail(ErrorCode::corrupt, "a bundle of {} kernels says it has {} bytes, but there are {}",
                header.kernels, header.total, bytes.size());
  const auto inside = [&](uint64_t offset, uint64_t size) {
    return offset <= bytes.size() && size <= bytes.size() - offset;
  };
  std::string_view before;
  for (uint32_t i = 0; i < header.kernels; ++i) {
    const KernelRecord kernel = kernel_record(bytes, i);
    if (!inside(kernel.name_offset, kernel.name_size) || kernel.name_size == 0 ||
        !inside(kernel.isa_offset, kernel.isa_size) || kernel.first_native > header.natives ||
        kernel.native_count > header.natives - kernel.first_native)
      return fail(ErrorCode::corrupt, "kernel {} of a bundle reaches outside it", i);
    const std::string_view name = text(bytes, kernel.name_offset, kernel.name_size);
    if (i > 0 && name <= before)
      return fail(ErrorCode::corrupt, "kernel {} of a bundle, '{}', is out of order", i, name);
    before = name;
  }
  for (uint32_t i = 0; i < header.natives; ++i) {
    const NativeRecord native = native_record(bytes, header.kernels, i);
    if (!inside(native.level_offset, native.level_size) ||
        !inside(native.code_offset, native.code_size) || native.entry_offset >= native.code_size ||
        native.words_offset >= native.code_size)
      return fail(ErrorCode::corrupt, "native code {} of a bundle reaches outside it", i);
  }
  KernelBundle bundle;
  bundle.bytes_ = bytes;
  bundle.count_ = header.kernels;
  return bundle;
}

std::string_view KernelBundle::name(size_t index) const {
  const KernelRecord kernel = kernel_record(bytes_, index);
  return text(bytes_, kernel.name_offset, kernel.name_size);
}

std::optional<size_t> KernelBundle::find(std::string_view wanted) const {
  size_t begin = 0, end = count_;
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    const std::string_view here = name(middle);
    if (here == wanted) return middle;
    (here < wanted ? begin : end) = here < wanted ? middle + 1 : middle;
  }
  return std::nullopt;
}

Result<isa::Program> KernelBundle::program(size_t index) const {
  const KernelRecord kernel = kernel_record(bytes_, index);
  return in_context(isa::decode(bytes_.subspan(kernel.isa_offset, kernel.isa_size)),
                    [&] { return fmt::format("kernel '{}'", name(index)); });
}

std::vector<isa::NativeCode> KernelBundle::native(size_t index) const {
  const KernelRecord kernel = kernel_record(bytes_, index);
  std::vector<isa::NativeCode> all;
  for (uint32_t i = 0; i < kernel.native_count; ++i) {
    const NativeRecord native = native_record(bytes_, count_, kernel.first_native + i);
    const auto code = bytes_.subspan(native.code_offset, native.code_size);
    all.push_back({.abi_version = native.abi_version,
                   .level = std::string(text(bytes_, native.level_offset, native.level_size)),
                   .code = {code.begin(), code.end()},
                   .entry_offset = native.entry_offset,
                   .words_offset = native.words_offset,
                   .scratch_fixed = native.scratch_fixed,
                   .scratch_per_thread = native.scratch_per_thread});
  }
  return all;
}

Status KernelBundleWriter::add(const isa::Program& program, std::vector<isa::NativeCode> native) {
  const auto at = std::ranges::lower_bound(entries_, program.name, {}, &Entry::name);
  if (at != entries_.end() && at->name == program.name)
    return fail(ErrorCode::already_exists, "two kernels are named '{}'", program.name);
  entries_.insert(at, {program.name, isa::encode(program), std::move(native)});
  return {};
}

std::vector<std::byte> KernelBundleWriter::finish() const {
  uint64_t natives = 0;
  for (const Entry& entry : entries_) natives += entry.native.size();
  const uint64_t tables =
      sizeof(Header) + entries_.size() * sizeof(KernelRecord) + natives * sizeof(NativeRecord);

  std::vector<std::byte> blobs;
  const auto place = [&](std::span<const std::byte> bytes, uint64_t alignment) {
    blobs.resize(align_up(tables + blobs.size(), alignment) - tables);
    const uint64_t offset = tables + blobs.size();
    blobs.insert(blobs.end(), bytes.begin(), bytes.end());
    return offset;
  };
  const auto place_text = [&](std::string_view string) {
    return static_cast<uint32_t>(place(std::as_bytes(std::span(string)), 1));
  };
  std::vector<KernelRecord> kernel_records;
  std::vector<NativeRecord> native_records;
  for (const Entry& entry : entries_) {
    KernelRecord kernel{};
    kernel.name_offset = place_text(entry.name);
    kernel.name_size = static_cast<uint32_t>(entry.name.size());
    kernel.isa_offset = place(entry.isa, 1);
    kernel.isa_size = entry.isa.size();
    kernel.first_native = static_cast<uint32_t>(native_records.size());
    kernel.native_count = static_cast<uint32_t>(entry.native.size());
    kernel_records.push_back(kernel);
    for (const isa::NativeCode& code : entry.native) {
      NativeRecord native{};
      native.level_offset = place_text(code.level);
      native.level_size = static_cast<uint32_t>(code.level.size());
      native.abi_version = code.abi_version;
      native.code_offset = place(code.code, 64);
      native.code_size = code.code.size();
      native.entry_offset = code.entry_offset;
      native.words_offset = code.words_offset;
      native.scratch_fixed = code.scratch_fixed;
      native.scratch_per_thread = code.scratch_per_thread;
      native_records.push_back(native);
    }
  }
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kBundleVersion;
  header.kernels = static_cast<uint32_t>(kernel_records.size());
  header.natives = static_cast<uint32_t>(native_records.size());
  header.total = tables + blobs.size();

  std::vector<std::byte> bytes;
  bytes.reserve(header.total);
  append(bytes, header);
  for (const KernelRecord& kernel : kernel_records) append(bytes, kernel);
  for (const NativeRecord& native : native_records) append(bytes, native);
  bytes.insert(bytes.end(), blobs.begin(), blobs.end());
  return bytes;
}

}  // namespace hologram::runtime
