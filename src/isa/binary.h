// The binary form: what archives hold. All of it is little-endian; a `varint` is LEB128 of a u64 in
// as few bytes as it takes, so a program has exactly one binary form.
//
//   1. magic        4 bytes  "HISA"
//   2. version      varint   kBinaryVersion
//   3. name         varint length, bytes
//   4. parameters   varint count, each: name, u8 kind (0 scalar, 1 read, 2 write, 3 read_write),
//                   u8 element type (DType's number)
//   5. shared       varint count, each: name, u8 element type, varint count of elements
//   6. registers    varint count, u8 type each
//   7. body         varint count, each: u8 operation (the table in binary.cpp), then the fields its
//                   form has, in the order type, from, axis, dst, a, b, c, symbol, immediate
//
// Nothing follows the body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "isa/program.h"
#include "support/result.h"

namespace hologram::isa {

inline constexpr uint32_t kBinaryVersion = 1;

// `program` must be verified.
std::vector<std::byte> encode(const Program& program);

// corrupt for bytes that are not a binary form (the message names the offset), unsupported for a
// version this reader does not know, verify_error for a program that breaks a rule. Memory and time
// are proportional to the number of bytes.
Result<Program> decode(std::span<const std::byte> bytes);
// The same into a program whose memory is used again; after an error it holds anything.
Status decode(std::span<const std::byte> bytes, Program& program);

// The stable number of an operation in the binary form, and back.
uint8_t binary_code(Opcode op);
std::optional<Opcode> opcode_from_binary_code(uint8_t code);

}  // namespace hologram::isa
