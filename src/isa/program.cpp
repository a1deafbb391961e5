#include "isa/program.h"

#include "support/aligned.h"

namespace hologram::isa {

std::optional<Opcode> opcode_from_name(std::string_view name) {
  for (uint8_t i = 0; i < kOpcodeCount; ++i)
    if (kOpcodes[i].name == name) return static_cast<Opcode>(i);
  return std::nullopt;
}

SharedLayout shared_layout(const Program& program) {
  SharedLayout layout;
  for (const SharedArray& array : program.shared) {
    layout.offsets.push_back(layout.fixed_bytes);
    layout.fixed_bytes += align_up(uint64_t{array.count} * size_of(array.type), kAlignment);
  }
  return layout;
}

uint64_t shared_count(const Program& program, uint32_t index, uint64_t dynamic_bytes) {
  const SharedArray& array = program.shared[index];
  return array.count != 0 ? array.count : dynamic_bytes / size_of(array.type);
}

bool is_identifier(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength) return false;
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (!letter(name[0])) return false;
  for (char c : name)
    if (!letter(c) && !(c >= '0' && c <= '9') && c != '.') return false;
  return true;
}

}  // namespace hologram::isa
