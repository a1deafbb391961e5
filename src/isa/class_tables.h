// The class algebra as code generators embed it: tables of the atlas, total over all bytes.
//
// Classes are those of the R96 map. What is not a class (96..255) has no mirror and no neighbours;
// a class has 5 or 6 neighbours, numbered from 0 in ascending order. "None" is kNoClass.
#pragma once

#include <array>
#include <cstdint>

#include "atlas/resonance.h"

namespace hologram::isa {

using atlas::kNoClass;
inline constexpr const std::array<uint8_t, 256>& kClassOf = atlas::kClassOfByte;
inline constexpr const std::array<uint8_t, 256>& kClassMirror = atlas::kMirrorOfClass;

// class_neighbour(id, number) is entry min(id, 96) * 8 + min(number, 7): 97 rows of 8, small enough
// to travel with every program that needs it.
inline constexpr std::array<uint8_t, 97 * 8> kClassNeighbours = [] {
  std::array<uint8_t, 97 * 8> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = atlas::kNeighbourOfClass[i];
  return table;
}();

}  // namespace hologram::isa
