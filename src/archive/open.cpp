#include <algorithm>
#include <cstring>
#include <utility>

#include "archive/archive.h"
#include "archive/layout.h"
#include "archive/unverified.h"
#include "support/aligned.h"
#include "support/file.h"

namespace hologram::archive {
namespace {

bool all_zero(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Enough for all that opening reads of a small model.
constexpr size_t kHeadBytes = 16 << 10;
// From here on a map costs less than to read as much.
constexpr size_t kMostHeadBytes = 128 << 10;

// The first bytes of a file, as many as head_size() asks for; fewer where those are too many.
struct Head {
  std::shared_ptr<std::byte[]> memory;
  std::span<std::byte> bytes = {};  // at a multiple of kAlignment

  // Half the time of AlignedBytes, whose allocator cuts a larger piece in three.
  static Head allocate(size_t size) {
    Head head{std::make_shared_for_overwrite<std::byte[]>(size + kAlignment - 1)};
    const auto begin = reinterpret_cast<uintptr_t>(head.memory.get());
    head.bytes = {head.memory.get() + (align_up(begin, kAlignment) - begin), size};
    return head;
  }
  static Result<Head> read(const OpenFile& file) {
    Head head;
    for (uint64_t size = std::min(file.size(), kHeadBytes);
         size > head.bytes.size() && size <= kMostHeadBytes;
         size = head_size({head.bytes, file.size()})) {
      Head more = allocate(size);
      std::ranges::copy(head.bytes, more.bytes.begin());
      HOLOGRAM_CHECK(file.read(head.bytes.size(), more.bytes.subspan(head.bytes.size())));
      head = std::move(more);
    }
    return head;
  }
};

}  // namespace

uint64_t head_size(const FileBytes& file) {
  Header header;
  if (file.bytes.size() < sizeof(header)) return std::min<uint64_t>(file.size, sizeof(header));
  std::memcpy(&header, file.bytes.data(), sizeof(header));
  const uint64_t table_size = header.section_count * sizeof(Entry);
  if (header.magic != kMagic || header.version != kVersion || header.section_count > 1024 ||
      header.table_offset > file.size || table_size > file.size - header.table_offset)
    return 0;
  // The constants come next as a rule, at the next page.
  const auto paged = [&](uint64_t end) {
    return std::min<uint64_t>(align_up(end, kConstantsAlignment), file.size);
  };
  uint64_t end = header.table_offset + table_size;
  if (!file.holds(header.table_offset, table_size)) return paged(end);
  for (uint64_t i = 0; i < header.section_count; ++i) {
    Entry entry;
    std::memcpy(&entry, file.bytes.data() + header.table_offset + i * sizeof(entry), sizeof(entry));
    if (entry.offset > file.size || entry.size > file.size) return file.size;
    end = std::max(end, entry.offset + (is_verified_later(entry.kind) ? 0 : entry.size));
  }
  return end <= file.bytes.size() ? end : paged(end);
}

Result<std::vector<Entry>> read_table(const FileBytes& file) {
  if (file.size < sizeof(Header))
    return fail(ErrorCode::corrupt, "not a .holo archive: only {} bytes", file.size);
  Header header;
  std::memcpy(&header, file.bytes.data(), sizeof(header));
  if (header.magic != kMagic)
    return fail(ErrorCode::corrupt, "not a .holo archive: it does not begin with HOLO");
  if (header.version != kVersion)
    return fail(ErrorCode::unsupported,
                "archive version {}; this reader knows version {}: compile the model again",
                header.version, kVersion);
  if (header.hash != header_hash(header) || header.reserved != 0)
    return fail(ErrorCode::corrupt, "the header is damaged");
  const uint64_t table_size = header.section_count * sizeof(Entry);
  if (header.section_count > 1024 || !file.holds(header.table_offset, table_size))
    return fail(ErrorCode::corrupt, "the section table lies outside the file: truncated?");
  std::vector<Entry> entries(header.section_count);
  if (table_size > 0)
    std::memcpy(entries.data(), file.bytes.data() + header.table_offset, table_size);
  if (hash128(std::as_bytes(std::span(entries))) != header.table_hash)
    return fail(ErrorCode::corrupt, "the section table is damaged");
  // In order, with nothing but zeros between them; the table lies between two of them or is last.
  const uint64_t table_end = header.table_offset + table_size;
  uint64_t end = sizeof(Header);
  bool table_passed = false;
  const auto pass = [&](uint64_t from, uint64_t to) -> Status {
    if (from < end || !file.holds(end, from - end))
      return fail(ErrorCode::corrupt, "a section lies outside the file or inside another");
    if (!all_zero(file.bytes.subspan(end, from - end)))
      return fail(ErrorCode::corrupt, "bytes between sections are not zero");
    end = to;
    return {};
  };
  for (const Entry& entry : entries) {
    if (!table_passed && entry.offset >= table_end) {
      HOLOGRAM_CHECK(pass(header.table_offset, table_end));
      table_passed = true;
    }
    // What lies in a section is read in place, as numbers.
    if (entry.offset % kAlignment != 0)
      return fail(ErrorCode::corrupt, "section {} does not begin at a multiple of {} bytes",
                  static_cast<uint32_t>(entry.kind), kAlignment);
    const uint64_t limit = table_passed ? header.file_size : header.table_offset;
    if (entry.offset > limit || entry.size > limit - entry.offset)
      return fail(ErrorCode::corrupt, "a section lies outside the file or inside another");
    HOLOGRAM_CHECK(pass(entry.offset, entry.offset + entry.size));
    const bool may_be_cut = entry.kind == SectionKind::weights && end == header.file_size;
    if (end > file.size && !may_be_cut)
      return fail(ErrorCode::corrupt, "{} bytes where the header says {}: truncated?", file.size,
                  header.file_size);
    if (entry.hashed_bytes() > entry.size || (entry.hashed != 0 && !may_be_cut) ||
        entry.hashed_bytes() > file.size - entry.offset)
      return fail(ErrorCode::corrupt, "section {} is cut off before its data",
                  static_cast<uint32_t>(entry.kind));
    if (is_verified_later(entry.kind)) continue;
    if (!file.holds(entry.offset, entry.hashed_bytes()) ||
        section_hash(file.bytes.subspan(entry.offset, entry.hashed_bytes())) != entry.hash)
      return fail(ErrorCode::corrupt, "section {} is damaged", static_cast<uint32_t>(entry.kind));
  }
  if (!table_passed) HOLOGRAM_CHECK(pass(header.table_offset, table_end));
  if (end != header.file_size || file.size > header.file_size)
    return fail(ErrorCode::corrupt, "{} bytes where the header says {}: truncated?", file.size,
                header.file_size);
  return entries;
}

Result<Archive> Archive::open(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                              const OpenOptions& options) {
  return open(FileBytes{bytes}, std::move(owner), options);
}

Result<Archive> Archive::open(const FileBytes& file, std::shared_ptr<const void> owner,
                              const OpenOptions& options) {
  if (reinterpret_cast<uintptr_t>(file.bytes.data()) % kAlignment != 0)
    return fail(ErrorCode::invalid_argument,
                "the archive's bytes do not lie at a multiple of {}: copy them to memory that does",
                kAlignment);
  HOLOGRAM_TRY(const std::vector<Entry> entries, read_table(file));
  Archive archive;
  archive.owner_ = std::move(owner);
  archive.trusted_ = options.trusted;
  archive.unverified_ = std::make_shared<Unverified>(options.keep_pages);
  archive.sections_.reserve(entries.size());
  std::span<const std::byte> hashes;
  uint64_t constant_bytes = 0;
  bool has_constants = false;
  for (const Entry& entry : entries) {
    archive.sections_.push_back({entry.kind, entry.offset, entry.size});
    if (entry.kind == SectionKind::constants) {
      if (std::exchange(has_constants, true))
        return fail(ErrorCode::corrupt, "the archive has its constants twice");
      constant_bytes = entry.size;
      archive.unverified_->set_place(entry.offset, entry.size, entry.hash);
      if (file.holds(entry.offset, entry.size))
        archive.unverified_->set_bytes(file.bytes.subspan(entry.offset, entry.size));
      continue;
    }
    // Only weights may be cut off.
    const auto section =
        file.bytes.subspan(entry.offset, std::min(entry.size, file.bytes.size() - entry.offset));
    if (entry.kind == SectionKind::code) archive.code_.push_back(section);
    if (entry.kind == SectionKind::weights) archive.weights_ = section;
    if (entry.kind == SectionKind::hashes) hashes = section;
    if (entry.kind != SectionKind::plan) continue;
    // No writer shares tables, and each takes four bytes at least: more visits are a trap.
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(section.data()), section.size(),
                                   128, static_cast<flatbuffers::uoffset_t>(section.size() / 4));
    if (!VerifyModelBuffer(verifier)) return fail(ErrorCode::corrupt, "the plan is malformed");
    archive.model_ = GetModel(section.data());
  }
  if (!hashes.empty()) HOLOGRAM_CHECK(archive.unverified_->set_blocks(hashes));
  if (!archive.model_) return fail(ErrorCode::corrupt, "the archive has no plan");
  HOLOGRAM_CHECK(check(*archive.model_, constant_bytes, !archive.weights_.empty()));
  return archive;
}

Result<Archive> Archive::open(const std::filesystem::path& path, const OpenOptions& options) {
  auto open_file = [&](OpenFile file) -> Result<Archive> {
    if (options.preload) {
      HOLOGRAM_TRY(AlignedBytes bytes, AlignedBytes::allocate(std::max<size_t>(1, file.size())));
      const std::span<std::byte> all = bytes.bytes().first(file.size());
      HOLOGRAM_CHECK(file.read(0, all));
      HOLOGRAM_TRY(Archive archive,
                   open(all, std::make_shared<AlignedBytes>(std::move(bytes)), options));
      HOLOGRAM_CHECK(archive.verify());  // all of it has just been read
      return archive;
    }
    HOLOGRAM_TRY(Head head, Head::read(file));
    const FileBytes read{head.bytes, file.size()};
    if (head_size(read) <= read.bytes.size()) {
      HOLOGRAM_TRY(Archive archive, open(read, std::move(head.memory), options));
      archive.unverified_->set_file(std::move(file));
      return archive;
    }
    HOLOGRAM_TRY(FileMap map, file.map());
    const std::span<const std::byte> all = map.bytes();
    HOLOGRAM_TRY(Archive archive, open(all, std::make_shared<FileMap>(std::move(map)), options));
    archive.unverified_->set_mapped();
    return archive;
  };
  HOLOGRAM_TRY(OpenFile file, OpenFile::open(path));
  return in_context(open_file(std::move(file)), [&] { return path.string(); });
}

}  // namespace hologram::archive
