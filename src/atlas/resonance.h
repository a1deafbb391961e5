// Resonance classes (R96): the second map of bytes to 96 classes, with its mirror and its graph.
//
// A class has four binary coordinates e1, e2, e3, e6, the mirror coordinate e7 and d45 in
// {-1, 0, 1}: id = 48 e1 + 24 e2 + 12 e3 + 6 e6 + 3 e7 + (d45 + 1). Bit 7 of the byte is ignored.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "atlas/sigil.h"

namespace hologram::atlas {

constexpr uint8_t resonance_class_of_byte(uint8_t byte) {
  const int e1 = byte & 1, e2 = byte >> 1 & 1, e3 = byte >> 2 & 1;
  const int e6 = byte >> 3 & 1, e7 = byte >> 4 & 1;
  return static_cast<uint8_t>(48 * e1 + 24 * e2 + 12 * e3 + 6 * e6 + 3 * e7 + (byte >> 5 & 3) % 3);
}

// Flips e7: an involution without fixed points. `cls` is below kClassCount, here and below.
constexpr uint8_t mirror(uint8_t cls) {
  return static_cast<uint8_t>(cls / 3 % 2 ? cls - 3 : cls + 3);
}

// The classes that stand for one.
constexpr bool is_unity(uint8_t cls) { return cls == 1 || cls == 4; }

inline constexpr int kMaxDegree = 6;
inline constexpr uint8_t kNoClass = 0xff;

// Neighbours in ascending order; kNoClass fills the places behind the last.
struct Neighbours {
  std::array<uint8_t, kMaxDegree> classes;
  uint8_t degree;
  constexpr std::span<const uint8_t> list() const { return {classes.data(), degree}; }
};

// One step in the class graph: one of e1, e2, e3, e6 flipped, or d45 moved by one.
constexpr Neighbours neighbours(uint8_t cls) {
  Neighbours result{{kNoClass, kNoClass, kNoClass, kNoClass, kNoClass, kNoClass}, 0};
  const auto insert = [&](int neighbour) {
    int place = result.degree++;
    for (; place > 0 && result.classes[place - 1] > neighbour; --place)
      result.classes[place] = result.classes[place - 1];
    result.classes[place] = static_cast<uint8_t>(neighbour);
  };
  for (const int weight : {48, 24, 12, 6}) insert(cls / weight % 2 ? cls - weight : cls + weight);
  if (cls % 3 > 0) insert(cls - 1);
  if (cls % 3 < 2) insert(cls + 1);
  return result;
}

// The tables behind the ISA's class instructions: total functions of bytes. What is not a class
// gives kNoClass, as does a neighbour past the last.
inline constexpr std::array<uint8_t, 256> kClassOfByte = [] {
  std::array<uint8_t, 256> table{};
  for (int i = 0; i < 256; ++i) table[i] = resonance_class_of_byte(static_cast<uint8_t>(i));
  return table;
}();
inline constexpr std::array<uint8_t, 256> kMirrorOfClass = [] {
  std::array<uint8_t, 256> table{};
  for (int i = 0; i < 256; ++i)
    table[i] = i < kClassCount ? mirror(static_cast<uint8_t>(i)) : kNoClass;
  return table;
}();
// Indexed by class * 8 + place.
inline constexpr std::array<uint8_t, 256 * 8> kNeighbourOfClass = [] {
  std::array<uint8_t, 256 * 8> table{};
  for (int i = 0; i < 256; ++i)
    for (int k = 0; k < 8; ++k)
      table[i * 8 + k] = i < kClassCount && k < kMaxDegree
                             ? neighbours(static_cast<uint8_t>(i)).classes[k]
                             : kNoClass;
  return table;
}();
constexpr uint8_t neighbour(uint8_t cls, uint8_t place) {
  return place < 8 ? kNeighbourOfClass[cls * 8 + place] : kNoClass;
}

}  // namespace hologram::atlas
