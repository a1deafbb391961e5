// Addresses: cells of a class. The belt has 48 pages of 256 bytes a class; the expanded space has
// 480 pages of 256 bytes of 65,536 sub-cells.
#pragma once

#include <cstdint>

#include "atlas/sigil.h"
#include "support/result.h"

namespace hologram::atlas {

inline constexpr uint32_t kPageBytes = 256;
inline constexpr uint32_t kBeltPages = 48;
inline constexpr uint32_t kBeltCells = kBeltPages * kPageBytes;  // 12,288 a class
inline constexpr uint32_t kBeltSize = kClassCount * kBeltCells;  // 1,179,648
inline constexpr uint32_t kExpandedPages = 480;
inline constexpr uint32_t kSubCells = 65536;
inline constexpr uint64_t kExpandedSize =
    uint64_t{kClassCount} * kExpandedPages * kPageBytes * kSubCells;
inline constexpr uint32_t kPhaseModulus = 768;

struct BeltCell {
  uint8_t cls;
  uint8_t page;
  uint8_t byte;
  bool operator==(const BeltCell&) const = default;
};

constexpr Result<uint32_t> belt_address(BeltCell cell) {
  if (cell.cls >= kClassCount)
    return fail(ErrorCode::out_of_range, "class {} is not below 96", cell.cls);
  if (cell.page >= kBeltPages)
    return fail(ErrorCode::out_of_range, "page {} is not below 48", cell.page);
  return cell.cls * kBeltCells + cell.page * kPageBytes + cell.byte;
}

constexpr Result<BeltCell> belt_cell(uint32_t address) {
  if (address >= kBeltSize)
    return fail(ErrorCode::out_of_range, "belt address {} is not below {}", address, kBeltSize);
  return BeltCell{static_cast<uint8_t>(address / kBeltCells),
                  static_cast<uint8_t>(address % kBeltCells / kPageBytes),
                  static_cast<uint8_t>(address % kPageBytes)};
}

struct ExpandedCell {
  uint8_t cls;
  uint16_t page;
  uint8_t byte;
  uint16_t sub;
  bool operator==(const ExpandedCell&) const = default;
};

constexpr Result<uint64_t> expanded_offset(ExpandedCell cell) {
  if (cell.cls >= kClassCount)
    return fail(ErrorCode::out_of_range, "class {} is not below 96", cell.cls);
  if (cell.page >= kExpandedPages)
    return fail(ErrorCode::out_of_range, "page {} is not below 480", cell.page);
  return ((uint64_t{cell.cls} * kExpandedPages + cell.page) * kPageBytes + cell.byte) * kSubCells +
         cell.sub;
}

constexpr Result<ExpandedCell> expanded_cell(uint64_t offset) {
  if (offset >= kExpandedSize)
    return fail(ErrorCode::out_of_range, "expanded offset {} is not below {}", offset,
                kExpandedSize);
  const uint64_t cell = offset / kSubCells, page = cell / kPageBytes;
  return ExpandedCell{
      static_cast<uint8_t>(page / kExpandedPages), static_cast<uint16_t>(page % kExpandedPages),
      static_cast<uint8_t>(cell % kPageBytes), static_cast<uint16_t>(offset % kSubCells)};
}

// The phase of a position: how far it is in the cycle of 768.
constexpr uint32_t phase(uint64_t position) {
  return static_cast<uint32_t>(position % kPhaseModulus);
}

}  // namespace hologram::atlas
