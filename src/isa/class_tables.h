// Class algebra as the ISA has it: table look-ups, total over all bytes.
//
// Classes are those of the R96 map. What is not a class (96..255) has no mirror and no neighbours;
// a class has 5 or 6 neighbours, numbered from 0 in ascending order. "None" is kNoClass.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace hologram::isa {

inline constexpr uint8_t kNoClass = 255;

// class_of: 256 entries. class_mirror: 256 entries.
extern const std::array<uint8_t, 256> kClassOf;
extern const std::array<uint8_t, 256> kClassMirror;
// class_neighbour: 97 rows of 8; row 96 and the unused columns are kNoClass.
extern const std::array<uint8_t, 97 * 8> kClassNeighbours;

inline uint8_t class_of(uint8_t byte) { return kClassOf[byte]; }
inline uint8_t class_mirror(uint8_t id) { return kClassMirror[id]; }
// class_neighbour of (class, number), for code generators to imitate.
inline uint8_t class_neighbour(uint8_t id, uint8_t number) {
  return kClassNeighbours[std::min<unsigned>(id, 96) * 8 + std::min<unsigned>(number, 7)];
}

}  // namespace hologram::isa
