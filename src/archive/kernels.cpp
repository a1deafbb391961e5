#include "archive/kernels.h"

#include <cstring>

#include "archive/layout.h"
#include "support/aligned.h"
#include "support/file.h"

namespace hologram::archive {

std::vector<std::byte> write_kernels(std::span<const std::byte> bundle) {
  const uint64_t table_offset = align_up(sizeof(Header) + bundle.size(), kAlignment);
  std::vector<std::byte> bytes(table_offset + sizeof(Entry));
  if (!bundle.empty()) std::memcpy(bytes.data() + sizeof(Header), bundle.data(), bundle.size());
  const Entry entry{SectionKind::kernels, 0, sizeof(Header),
                    bundle.size(),        0, section_hash(bundle)};
  std::memcpy(bytes.data() + table_offset, &entry, sizeof(entry));
  Header header{
      kMagic, kVersion, bytes.size(), 1, table_offset, hash128(std::as_bytes(std::span(&entry, 1))),
      0,      0};
  header.hash = header_hash(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

Result<std::vector<std::byte>> read_kernels(const std::filesystem::path& path) {
  const auto read = [&]() -> Result<std::vector<std::byte>> {
    HOLOGRAM_TRY(const FileMap map, FileMap::open(path));
    HOLOGRAM_TRY(const std::vector<Entry> entries, read_table({map.bytes()}));
    for (const Entry& entry : entries) {
      if (entry.kind != SectionKind::kernels) continue;
      const auto bundle = map.bytes().subspan(entry.offset, entry.size);
      return std::vector<std::byte>(bundle.begin(), bundle.end());
    }
    return fail(ErrorCode::invalid_argument,
                "the archive holds no kernels; 'hologram kernels compile' writes one that does");
  };
  return in_context(read(), [&] { return path.string(); });
}

}  // namespace hologram::archive
