#include "codegen/object_linker.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>

#include <cstring>
#include <map>

namespace hologram::codegen {
namespace {

using llvm::object::ELF64LEObjectFile;
using llvm::object::SectionRef;
using llvm::object::SymbolRef;

template <typename T>
Result<T> checked(llvm::Expected<T> value) {
  if (value) return std::move(*value);
  return fail(ErrorCode::internal, "object: {}", llvm::toString(value.takeError()));
}

class Linker {
 public:
  explicit Linker(const ELF64LEObjectFile& object) : object_(object) {}

  Result<LinkedCode> link(std::string_view entry) && {
    // Code first, so that a disassembler reads it from the start of the blob.
    HOLOGRAM_CHECK(lay_out(true));
    HOLOGRAM_CHECK(lay_out(false));
    for (const SectionRef& section : object_.sections()) HOLOGRAM_CHECK(relocate(section));
    for (const SymbolRef& symbol : object_.symbols()) {
      HOLOGRAM_TRY(const llvm::StringRef name, checked(symbol.getName()));
      if (name != llvm::StringRef(entry)) continue;
      HOLOGRAM_TRY(linked_.entry_offset, offset_of(symbol));
      return std::move(linked_);
    }
    return fail(ErrorCode::internal, "object: no symbol '{}'", entry);
  }

 private:
  Status lay_out(bool code) {
    for (const SectionRef& section : object_.sections()) {
      const llvm::object::ELFSectionRef elf(section);
      if (!(elf.getFlags() & llvm::ELF::SHF_ALLOC) || section.getSize() == 0) continue;
      if (((elf.getFlags() & llvm::ELF::SHF_EXECINSTR) != 0) != code) continue;
      HOLOGRAM_TRY(const llvm::StringRef name, checked(section.getName()));
      if (elf.getFlags() & llvm::ELF::SHF_WRITE)
        return fail(ErrorCode::internal, "object: section '{}' can be written", name.str());
      if (name.starts_with(".eh_frame")) continue;
      HOLOGRAM_TRY(const llvm::StringRef contents, checked(section.getContents()));
      const uint64_t alignment = std::max<uint64_t>(section.getAlignment().value(), 1);
      const uint64_t offset = (linked_.bytes.size() + alignment - 1) / alignment * alignment;
      // Between functions and data: int3, so that a stray jump stops.
      linked_.bytes.resize(offset, std::byte{0xcc});
      const auto* const first = reinterpret_cast<const std::byte*>(contents.data());
      linked_.bytes.insert(linked_.bytes.end(), first, first + contents.size());
      offsets_[section.getIndex()] = offset;
    }
    return {};
  }

  Result<uint64_t> offset_of(const SymbolRef& symbol) {
    HOLOGRAM_TRY(const llvm::StringRef name, checked(symbol.getName()));
    HOLOGRAM_TRY(const auto section, checked(symbol.getSection()));
    if (section == object_.section_end())
      return fail(ErrorCode::internal, "object: undefined symbol '{}'", name.str());
    const auto found = offsets_.find(section->getIndex());
    if (found == offsets_.end())
      return fail(ErrorCode::internal, "object: symbol '{}' lies in a section that is left out",
                  name.str());
    HOLOGRAM_TRY(const uint64_t value, checked(symbol.getValue()));
    return found->second + value;
  }

  Status relocate(const SectionRef& relocations) {
    HOLOGRAM_TRY(const auto target, checked(relocations.getRelocatedSection()));
    if (target == object_.section_end()) return {};
    const auto found = offsets_.find(target->getIndex());
    if (found == offsets_.end()) return {};  // of what is left out: unwind tables
    for (const auto& relocation : relocations.relocations()) {
      const llvm::object::ELFRelocationRef elf(relocation);
      const uint64_t type = relocation.getType();
      if (type != llvm::ELF::R_X86_64_PC32 && type != llvm::ELF::R_X86_64_PLT32) {
        llvm::SmallString<32> type_name;
        relocation.getTypeName(type_name);
        return fail(ErrorCode::internal, "object: relocation {} is not relative to the code",
                    std::string(type_name));
      }
      HOLOGRAM_TRY(const int64_t addend, checked(elf.getAddend()));
      HOLOGRAM_TRY(const uint64_t symbol, offset_of(*relocation.getSymbol()));
      const uint64_t place = found->second + relocation.getOffset();
      const int64_t distance = static_cast<int64_t>(symbol) + addend - static_cast<int64_t>(place);
      const auto value = static_cast<int32_t>(distance);
      if (value != distance || place + sizeof value > linked_.bytes.size())
        return fail(ErrorCode::internal, "object: a relocation is out of range");
      std::memcpy(linked_.bytes.data() + place, &value, sizeof value);
    }
    return {};
  }

  const ELF64LEObjectFile& object_;
  LinkedCode linked_;
  std::map<uint64_t, uint64_t> offsets_;  // section index -> where it lies
};

}  // namespace

Result<LinkedCode> link_object(std::span<const std::byte> object, std::string_view entry) {
  const llvm::StringRef bytes(reinterpret_cast<const char*>(object.data()), object.size());
  HOLOGRAM_TRY(const auto file,
               checked(ELF64LEObjectFile::create(llvm::MemoryBufferRef(bytes, "object"))));
  return Linker(file).link(entry);
}

}  // namespace hologram::codegen
