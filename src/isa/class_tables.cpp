#include "isa/class_tables.h"

namespace hologram::isa {
namespace {

// id = 48 e1 + 24 e2 + 12 e3 + 6 e6 + 3 e7 + (d45 + 1); bit 7 of the byte is ignored.
constexpr uint8_t r96(unsigned byte) {
  const auto bit = [byte](unsigned i) { return byte >> i & 1; };
  return static_cast<uint8_t>(48 * bit(0) + 24 * bit(1) + 12 * bit(2) + 6 * bit(3) + 3 * bit(4) +
                              (byte >> 5 & 3) % 3);
}

constexpr uint8_t flip(uint8_t id, unsigned weight) {
  return static_cast<uint8_t>(id / weight % 2 == 0 ? id + weight : id - weight);
}

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) table[byte] = r96(byte);
  return table;
}

constexpr std::array<uint8_t, 256> make_mirrors() {
  std::array<uint8_t, 256> table{};
  table.fill(kNoClass);
  for (uint8_t id = 0; id < 96; ++id) table[id] = flip(id, 3);
  return table;
}

constexpr std::array<uint8_t, 97 * 8> make_neighbours() {
  std::array<uint8_t, 97 * 8> table{};
  table.fill(kNoClass);
  for (uint8_t id = 0; id < 96; ++id) {
    uint8_t* row = &table[id * 8];
    for (unsigned weight : {48, 24, 12, 6}) *row++ = flip(id, weight);
    if (id % 3 != 0) *row++ = static_cast<uint8_t>(id - 1);
    if (id % 3 != 2) *row++ = static_cast<uint8_t>(id + 1);
    std::sort(&table[id * 8], row);
  }
  return table;
}

}  // namespace

constinit const std::array<uint8_t, 256> kClassOf = make_classes();
constinit const std::array<uint8_t, 256> kClassMirror = make_mirrors();
constinit const std::array<uint8_t, 97 * 8> kClassNeighbours = make_neighbours();

}  // namespace hologram::isa
