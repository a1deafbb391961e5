#include "isa/program.h"

#include <array>

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
  enum : uint8_t { kNeither, kInside, kAnywhere };
  static constexpr std::array<uint8_t, 256> kPlaces = [] {
    std::array<uint8_t, 256> places{};
    for (int c = '0'; c <= '9'; ++c) places[c] = kInside;
    places['.'] = kInside;
    for (int c = 'a'; c <= 'z'; ++c) places[c] = places[c - 'a' + 'A'] = kAnywhere;
    places['_'] = kAnywhere;
    return places;
  }();
  if (kPlaces[static_cast<uint8_t>(name[0])] != kAnywhere) return false;
  for (char c : name)
    if (kPlaces[static_cast<uint8_t>(c)] == kNeither) return false;
  return true;
}

}  // namespace hologram::isa
