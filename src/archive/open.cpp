#include <algorithm>
#include <cstring>

#include "archive/archive.h"
#include "archive/layout.h"
#include "archive/pages.h"
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

struct MappedFile {
  AlignedBytes head;
  FileMap map;
};

}  // namespace

Result<std::vector<Entry>> read_table(const FileBytes& bytes) {
  if (bytes.size() < sizeof(Header))
    return fail(ErrorCode::corrupt, "not a .holo archive: only {} bytes", bytes.size());
  Header header;
  std::memcpy(&header, bytes.at(0, sizeof(header)).data(), sizeof(header));
  if (header.magic != kMagic)
    return fail(ErrorCode::corrupt, "not a .holo archive: it does not begin with HOLO");
  if (header.version != kVersion)
    return fail(ErrorCode::unsupported,
                "archive version {}; this reader knows version {}: compile the model again",
                header.version, kVersion);
  if (header.hash != header_hash(header) || header.reserved != 0)
    return fail(ErrorCode::corrupt, "the header is damaged");
  const uint64_t table_size = header.section_count * sizeof(Entry);
  if (header.section_count > 1024 || header.table_offset > bytes.size() ||
      bytes.size() - header.table_offset < table_size)
    return fail(ErrorCode::corrupt, "the section table lies outside the file: truncated?");
  std::vector<Entry> entries(header.section_count);
  std::ranges::copy(bytes.at(header.table_offset, table_size),
                    std::as_writable_bytes(std::span(entries)).begin());
  if (hash128(std::as_bytes(std::span(entries))) != header.table_hash)
    return fail(ErrorCode::corrupt, "the section table is damaged");
  // In order, with nothing but zeros between them; the table lies between two of them or is last.
  const uint64_t table_end = header.table_offset + table_size;
  uint64_t end = sizeof(Header);
  bool table_passed = false;
  const auto pass = [&](uint64_t from, uint64_t to) -> Status {
    if (from < end || from > bytes.size())
      return fail(ErrorCode::corrupt, "a section lies outside the file or inside another");
    if (!all_zero(bytes.at(end, from - end)))
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
    if (end > bytes.size() && !may_be_cut)
      return fail(ErrorCode::corrupt, "{} bytes where the header says {}: truncated?", bytes.size(),
                  header.file_size);
    if (entry.hashed_bytes() > entry.size || (entry.hashed != 0 && !may_be_cut) ||
        entry.hashed_bytes() > bytes.size() - entry.offset)
      return fail(ErrorCode::corrupt, "section {} is cut off before its data",
                  static_cast<uint32_t>(entry.kind));
    if (!is_verified_later(entry.kind) &&
        section_hash(bytes.at(entry.offset, entry.hashed_bytes())) != entry.hash)
      return fail(ErrorCode::corrupt, "section {} is damaged", static_cast<uint32_t>(entry.kind));
  }
  if (!table_passed) HOLOGRAM_CHECK(pass(header.table_offset, table_end));
  if (end != header.file_size || bytes.size() > header.file_size)
    return fail(ErrorCode::corrupt, "{} bytes where the header says {}: truncated?", bytes.size(),
                header.file_size);
  return entries;
}

Result<Archive> Archive::open(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                              const OpenOptions& options) {
  return open(FileBytes{bytes}, std::move(owner), options);
}

Result<Archive> Archive::open(const FileBytes& bytes, std::shared_ptr<const void> owner,
                              const OpenOptions& options) {
  if (reinterpret_cast<uintptr_t>(bytes.all.data()) % kAlignment != 0)
    return fail(ErrorCode::invalid_argument,
                "the archive's bytes do not lie at a multiple of {}: copy them to memory that does",
                kAlignment);
  HOLOGRAM_TRY(const std::vector<Entry> entries, read_table(bytes));
  Archive archive;
  archive.owner_ = std::move(owner);
  archive.trusted_ = options.trusted;
  archive.unverified_ = std::make_shared<Unverified>();
  std::span<const std::byte> hashes;
  for (const Entry& entry : entries) {
    auto section = bytes.at(entry.offset, std::min(entry.size, bytes.size() - entry.offset));
    if (is_verified_later(entry.kind)) section = bytes.all.subspan(entry.offset, section.size());
    archive.sections_.push_back({entry.kind, entry.offset, entry.size});
    if (entry.kind == SectionKind::constants) archive.constants_ = section;
    if (entry.kind == SectionKind::code) archive.code_.push_back(section);
    if (entry.kind == SectionKind::weights) archive.weights_ = section;
    if (entry.kind == SectionKind::hashes) hashes = section;
    if (is_verified_later(entry.kind)) archive.unverified_->add(entry.kind, section, entry.hash);
    if (entry.kind != SectionKind::plan) continue;
    // No writer shares tables, and each takes four bytes at least: more visits are a trap.
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(section.data()), section.size(),
                                   128, static_cast<flatbuffers::uoffset_t>(section.size() / 4));
    if (!VerifyModelBuffer(verifier)) return fail(ErrorCode::corrupt, "the plan is malformed");
    archive.model_ = GetModel(section.data());
  }
  if (!hashes.empty()) HOLOGRAM_CHECK(archive.unverified_->set_blocks(hashes));
  if (!archive.model_) return fail(ErrorCode::corrupt, "the archive has no plan");
  HOLOGRAM_CHECK(check(*archive.model_, archive.constants_.size(), !archive.weights_.empty()));
  return archive;
}

Result<Archive> Archive::open(const std::filesystem::path& path, const OpenOptions& options) {
  auto open_file = [&]() -> Result<Archive> {
    if (options.preload) {
      HOLOGRAM_TRY(FileMap map, FileMap::open(path));
      HOLOGRAM_TRY(AlignedBytes bytes, AlignedBytes::allocate(std::max<size_t>(1, map.size())));
      std::memcpy(bytes.data(), map.bytes().data(), map.size());
      const std::span<const std::byte> view(bytes.data(), map.size());
      HOLOGRAM_TRY(Archive archive,
                   open(view, std::make_shared<AlignedBytes>(std::move(bytes)), options));
      HOLOGRAM_CHECK(archive.verify());  // all of it has just been read
      return archive;
    }
    auto owner = std::make_shared<MappedFile>();
    HOLOGRAM_TRY(owner->head, AlignedBytes::allocate(kHeadBytes));
    std::span<std::byte> head = owner->head.bytes();
    HOLOGRAM_TRY(owner->map, FileMap::open(path, head));
    HOLOGRAM_TRY(Archive archive, open(FileBytes{owner->map.bytes(), head}, owner, options));
    archive.unverified_->set_mapped();
    if (!options.keep_pages && archive.constants_.size() >= PageRelease::kLarge)
      archive.pages_ = std::make_shared<PageRelease>(archive.constants_);
    return archive;
  };
  return in_context(open_file(), [&] { return path.string(); });
}

PageRelease* Archive::page_release() const {
  return pages_ && pages_->is_cheap() ? pages_.get() : nullptr;
}

}  // namespace hologram::archive
