#include "archive/code_section.h"

#include <cstring>

#include "support/aligned.h"

namespace hologram::archive {
namespace {

constexpr uint32_t kCodeVersion = 1;
constexpr std::string_view kContext = "hologram native code";
constexpr uint64_t kCodeAlignment = 64;

struct Header {
  uint32_t version, abi_version, level, entries;
  std::array<std::byte, 32> signer;
  std::array<std::byte, 16> zeros;
};
struct Record {
  uint32_t program, uniform;
  uint64_t code_offset, code_size, entry_offset, scratch_fixed, scratch_per_thread;
  std::array<std::byte, 32> program_hash;
};
static_assert(sizeof(Header) == 64 && sizeof(Record) == 80);

template <typename T>
T read(std::span<const std::byte> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace

uint32_t code_level(std::span<const std::byte> bytes) {
  return bytes.size() < sizeof(Header) ? 0 : read<Header>(bytes, 0).level;
}

Result<CodeSection> CodeSection::open(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Header) + sizeof(Signature))
    return fail(ErrorCode::corrupt, "native code of {} bytes", bytes.size());
  const auto header = read<Header>(bytes, 0);
  if (header.version != kCodeVersion || header.abi_version != isa::kNativeAbiVersion)
    return fail(ErrorCode::unsupported,
                "native code of version {} and ABI {}; this runtime has {} and {}", header.version,
                header.abi_version, kCodeVersion, isa::kNativeAbiVersion);
  const uint64_t signed_bytes = bytes.size() - sizeof(Signature);
  const uint64_t records_end = sizeof(Header) + uint64_t{header.entries} * sizeof(Record);
  if (records_end > signed_bytes)
    return fail(ErrorCode::corrupt, "native code with {} entries in {} bytes", header.entries,
                bytes.size());
  CodeSection section;
  section.bytes_ = bytes;
  section.level_ = header.level;
  section.signer_.bytes = header.signer;
  for (uint32_t i = 0; i < header.entries; ++i) {
    const auto r = read<Record>(bytes, sizeof(Header) + i * sizeof(Record));
    if (r.code_offset < records_end || r.code_offset > signed_bytes ||
        r.code_size > signed_bytes - r.code_offset || r.code_offset % kCodeAlignment != 0 ||
        r.entry_offset >= r.code_size)
      return fail(ErrorCode::corrupt, "native code {} reaches outside its section", i);
    section.entries_.push_back({r.program, r.uniform, r.code_offset, r.code_size, r.entry_offset,
                                r.scratch_fixed, r.scratch_per_thread, r.program_hash});
  }
  return section;
}

bool CodeSection::is_genuine() const {
  const uint64_t signed_bytes = bytes_.size() - sizeof(Signature);
  return verify(signer_, kContext, bytes_.first(signed_bytes),
                read<Signature>(bytes_, signed_bytes));
}

std::vector<std::byte> write_code_section(uint32_t level, std::span<const CompiledProgram> programs,
                                          const KeyPair& key) {
  uint64_t end = align_up(sizeof(Header) + programs.size() * sizeof(Record), kCodeAlignment);
  std::vector<Record> records;
  for (const CompiledProgram& p : programs) {
    records.push_back({p.program, p.uniform, end, p.code.code.size(), p.code.entry_offset,
                       p.code.scratch_fixed, p.code.scratch_per_thread, secure_hash(p.isa)});
    end = align_up(end + p.code.code.size(), kCodeAlignment);
  }
  std::vector<std::byte> bytes(end + sizeof(Signature));
  const Header header{kCodeVersion,
                      isa::kNativeAbiVersion,
                      level,
                      static_cast<uint32_t>(programs.size()),
                      key.public_key().bytes,
                      {}};
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (!records.empty())
    std::memcpy(bytes.data() + sizeof(header), records.data(), records.size() * sizeof(Record));
  for (size_t i = 0; i < programs.size(); ++i)
    std::memcpy(bytes.data() + records[i].code_offset, programs[i].code.code.data(),
                programs[i].code.code.size());
  const Signature signature = key.sign(kContext, std::span(bytes).first(end));
  std::memcpy(bytes.data() + end, signature.data(), signature.size());
  return bytes;
}

}  // namespace hologram::archive
