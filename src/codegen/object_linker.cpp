#include "codegen/object_linker.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace hologram::codegen {
namespace {

std::unexpected<Error> bad(const char* what) {
  return fail(ErrorCode::internal, "object: {}", what);
}

// The tables of a relocatable ELF file, copied out of it: nothing in it need be aligned. Every
// range is checked against the file. (The headers are the C library's: LLVM's reader of objects
// does not compile as C++23 under clang.)
class Object {
 public:
  static Result<Object> read(std::span<const std::byte> bytes) {
    Object object;
    object.bytes_ = bytes;
    Elf64_Ehdr header;
    if (bytes.size() < sizeof header) return bad("shorter than a header");
    std::memcpy(&header, bytes.data(), sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_type != ET_REL || header.e_machine != EM_X86_64)
      return bad("not a relocatable x86-64 ELF file");
    if (header.e_shentsize != sizeof(Elf64_Shdr)) return bad("sections of unknown form");
    HOLOGRAM_TRY(object.sections_, object.table<Elf64_Shdr>(header.e_shoff, header.e_shnum));
    if (header.e_shstrndx >= object.sections_.size()) return bad("sections without names");
    object.names_ = header.e_shstrndx;
    for (const Elf64_Shdr& section : object.sections_)
      if (section.sh_type == SHT_SYMTAB) {
        HOLOGRAM_TRY(object.symbols_, object.entries<Elf64_Sym>(section));
        object.symbol_names_ = section.sh_link;
      }
    return object;
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const std::vector<Elf64_Sym>& symbols() const { return symbols_; }

  Result<std::string_view> name_of(const Elf64_Shdr& section) const {
    return text(names_, section.sh_name);
  }
  Result<std::string_view> name_of(const Elf64_Sym& symbol) const {
    return text(symbol_names_, symbol.st_name);
  }
  Result<std::span<const std::byte>> contents(const Elf64_Shdr& section) const {
    return range(section.sh_offset, section.sh_size);
  }
  template <typename Entry>
  Result<std::vector<Entry>> entries(const Elf64_Shdr& section) const {
    if (section.sh_entsize != sizeof(Entry)) return bad("a table of unknown form");
    return table<Entry>(section.sh_offset, section.sh_size / sizeof(Entry));
  }

 private:
  Result<std::span<const std::byte>> range(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset)
      return bad("it points outside of itself");
    return bytes_.subspan(offset, size);
  }

  template <typename Entry>
  Result<std::vector<Entry>> table(uint64_t offset, uint64_t count) const {
    if (count > bytes_.size() / sizeof(Entry)) return bad("a table longer than the file");
    HOLOGRAM_TRY(const auto from, range(offset, count * sizeof(Entry)));
    std::vector<Entry> entries(count);
    if (count > 0) std::memcpy(entries.data(), from.data(), from.size());
    return entries;
  }

  Result<std::string_view> text(size_t table, uint64_t at) const {
    if (table >= sections_.size()) return bad("a name in no table");
    HOLOGRAM_TRY(const auto bytes, contents(sections_[table]));
    const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const size_t end = at < all.size() ? all.find('\0', at) : std::string_view::npos;
    if (end == std::string_view::npos) return bad("a name that does not end");
    return all.substr(at, end - at);
  }

  std::span<const std::byte> bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  size_t names_ = 0, symbol_names_ = 0;  // string tables
};

class Linker {
 public:
  explicit Linker(const Object& object) : object_(object) {}

  Result<LinkedCode> link(std::string_view entry, std::string_view second) && {
    // Code first, so that a disassembler reads it from the start of the blob.
    HOLOGRAM_CHECK(lay_out(true));
    HOLOGRAM_CHECK(lay_out(false));
    for (const Elf64_Shdr& section : object_.sections())
      if (section.sh_type == SHT_RELA) HOLOGRAM_CHECK(relocate(section));
    bool found = false;
    for (const Elf64_Sym& symbol : object_.symbols()) {
      HOLOGRAM_TRY(const std::string_view name, object_.name_of(symbol));
      if (name.empty()) continue;
      if (name == entry) {
        HOLOGRAM_TRY(linked_.entry_offset, offset_of(symbol));
        found = true;
      } else if (name == second) {
        HOLOGRAM_TRY(linked_.second_offset, offset_of(symbol));
      }
    }
    if (!found) return fail(ErrorCode::internal, "object: no symbol '{}'", entry);
    return std::move(linked_);
  }

 private:
  Status lay_out(bool code) {
    for (size_t i = 0; i < object_.sections().size(); ++i) {
      const Elf64_Shdr& section = object_.sections()[i];
      if (!(section.sh_flags & SHF_ALLOC) || section.sh_size == 0) continue;
      if (((section.sh_flags & SHF_EXECINSTR) != 0) != code) continue;
      HOLOGRAM_TRY(const std::string_view name, object_.name_of(section));
      if (section.sh_flags & SHF_WRITE)
        return fail(ErrorCode::internal, "object: section '{}' can be written", name);
      if (name.starts_with(".eh_frame")) continue;
      HOLOGRAM_TRY(const auto contents, object_.contents(section));
      const uint64_t alignment = std::max<uint64_t>(section.sh_addralign, 1);
      if (alignment > 4096) return bad("a section of impossible alignment");
      const uint64_t offset = (linked_.bytes.size() + alignment - 1) / alignment * alignment;
      // Between functions and data: int3, so that a stray jump stops.
      linked_.bytes.resize(offset, std::byte{0xcc});
      linked_.bytes.insert(linked_.bytes.end(), contents.begin(), contents.end());
      offsets_[i] = offset;
    }
    return {};
  }

  Result<uint64_t> offset_of(const Elf64_Sym& symbol) const {
    HOLOGRAM_TRY(const std::string_view name, object_.name_of(symbol));
    if (symbol.st_shndx == SHN_UNDEF)
      return fail(ErrorCode::internal, "object: undefined symbol '{}'", name);
    const auto found = offsets_.find(symbol.st_shndx);
    if (found == offsets_.end())
      return fail(ErrorCode::internal, "object: symbol '{}' lies in a section that is left out",
                  name);
    return found->second + symbol.st_value;
  }

  Status relocate(const Elf64_Shdr& relocations) {
    const auto found = offsets_.find(relocations.sh_info);
    if (found == offsets_.end()) return {};  // of what is left out: unwind tables
    HOLOGRAM_TRY(const auto entries, object_.entries<Elf64_Rela>(relocations));
    for (const Elf64_Rela& relocation : entries) {
      const uint64_t type = ELF64_R_TYPE(relocation.r_info);
      if (type != R_X86_64_PC32 && type != R_X86_64_PLT32)
        return fail(ErrorCode::internal, "object: relocation type {} is not relative to the code",
                    type);
      const uint64_t index = ELF64_R_SYM(relocation.r_info);
      if (index >= object_.symbols().size()) return bad("a relocation without its symbol");
      HOLOGRAM_TRY(const uint64_t symbol, offset_of(object_.symbols()[index]));
      const uint64_t place = found->second + relocation.r_offset;
      const auto distance =
          static_cast<int64_t>(symbol + static_cast<uint64_t>(relocation.r_addend) - place);
      const auto value = static_cast<int32_t>(distance);
      if (value != distance || place > linked_.bytes.size() ||
          linked_.bytes.size() - place < sizeof value)
        return bad("a relocation is out of range");
      std::memcpy(linked_.bytes.data() + place, &value, sizeof value);
    }
    return {};
  }

  const Object& object_;
  LinkedCode linked_;
  std::map<uint64_t, uint64_t> offsets_;  // section index -> where it lies
};

}  // namespace

Result<LinkedCode> link_object(std::span<const std::byte> object, std::string_view entry,
                               std::string_view second) {
  HOLOGRAM_TRY(const Object file, Object::read(object));
  return Linker(file).link(entry, second);
}

}  // namespace hologram::codegen
