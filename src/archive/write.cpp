#include <cstring>
#include <map>

#include "archive/archive.h"
#include "archive/layout.h"
#include "support/aligned.h"
#include "support/hash.h"

namespace hologram::archive {
namespace {

struct ByHash {
  bool operator()(const Hash128& a, const Hash128& b) const {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  }
};

}  // namespace

Result<std::vector<std::byte>> write(ModelT& model,
                                     std::span<const std::span<const std::byte>> constants,
                                     const Weights& weights,
                                     std::span<const std::vector<std::byte>> code) {
  if (constants.size() != model.constants.size())
    return fail(ErrorCode::internal, "{} constants for {} entries", constants.size(),
                model.constants.size());
  // Where each constant goes; the same bytes go to the same place.
  std::map<Hash128, size_t, ByHash> seen;
  uint64_t constant_bytes = 0;
  std::vector<size_t> stored;
  for (size_t i = 0; i < constants.size(); ++i) {
    ConstantT& entry = *model.constants[i];
    entry.size = constants[i].size();
    if (entry.tensor >= 0) continue;
    auto [same, fresh] = seen.try_emplace(hash128(constants[i]), i);
    if (!fresh && constants[same->second].size() == constants[i].size()) {
      entry.offset = model.constants[same->second]->offset;
      continue;
    }
    entry.offset = constant_bytes;
    constant_bytes = align_up(constant_bytes + constants[i].size(), kAlignment);
    stored.push_back(i);
  }

  flatbuffers::FlatBufferBuilder builder(64 * 1024);
  builder.Finish(Model::Pack(builder, &model));
  const uint64_t plan_offset = sizeof(Header);
  std::vector<Entry> entries = {{SectionKind::plan, 0, plan_offset, builder.GetSize(), 0, {}}};
  uint64_t end = plan_offset + builder.GetSize();
  for (const std::vector<std::byte>& section : code) {
    const uint64_t offset = align_up(end, kAlignment);
    entries.push_back({SectionKind::code, 0, offset, section.size(), 0, {}});
    end = offset + section.size();
  }
  if (constant_bytes > kHashBlock) {
    const uint64_t offset = align_up(end, kAlignment);
    entries.push_back(
        {SectionKind::hashes, 0, offset, block_count(constant_bytes) * sizeof(Hash128), 0, {}});
    end = offset + entries.back().size;
  }
  // The table lies before the constants: all that opening reads is in one piece.
  const bool has_weights = !weights.bytes.empty();
  const uint64_t table_offset = align_up(end, kAlignment);
  const uint64_t table_end = table_offset + (entries.size() + 1 + has_weights) * sizeof(Entry);
  const uint64_t constants_offset = align_up(table_end, kConstantsAlignment);
  entries.push_back({SectionKind::constants, 0, constants_offset, constant_bytes, 0, {}});
  const uint64_t constants_end = constants_offset + constant_bytes;
  const uint64_t weights_offset = align_up(constants_end, kAlignment);
  if (has_weights)
    entries.push_back(
        {SectionKind::weights, 0, weights_offset, weights.bytes.size(), weights.directory, {}});
  const uint64_t total = has_weights ? weights_offset + weights.bytes.size() : constants_end;
  std::vector<std::byte> bytes(total);
  std::memcpy(bytes.data() + plan_offset, builder.GetBufferPointer(), builder.GetSize());
  for (size_t i = 0; i < code.size(); ++i)
    std::memcpy(bytes.data() + entries[1 + i].offset, code[i].data(), code[i].size());
  for (size_t i : stored)
    if (!constants[i].empty())
      std::memcpy(bytes.data() + constants_offset + model.constants[i]->offset, constants[i].data(),
                  constants[i].size());
  if (has_weights)
    std::memcpy(bytes.data() + weights_offset, weights.bytes.data(), weights.bytes.size());

  const auto hashes = block_hashes(std::span(bytes).subspan(constants_offset, constant_bytes));
  for (const Entry& entry : entries)
    if (entry.kind == SectionKind::hashes)
      std::memcpy(bytes.data() + entry.offset, hashes.data(), entry.size);
  for (Entry& entry : entries)
    entry.hash = section_hash(std::span(bytes).subspan(entry.offset, entry.hashed_bytes()));
  std::memcpy(bytes.data() + table_offset, entries.data(), entries.size() * sizeof(Entry));
  Header header{kMagic,
                kVersion,
                total,
                entries.size(),
                table_offset,
                hash128(std::as_bytes(std::span(entries))),
                0,
                0};
  header.hash = header_hash(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

}  // namespace hologram::archive
