// Program: one kernel, a scalar body run by every thread of a grid of blocks.
//
// The body is a flat list of instructions; `if_begin`, `for_begin` and `loop_begin` open a region
// that `end` closes, so control flow is structured and needs no labels. Registers are typed,
// private to a thread and may be assigned more than once. A program is plain data: copy it, compare
// it, build it by hand; `verify()` (verifier.h) says whether it may run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isa/opcode.h"
#include "support/dtype.h"

namespace hologram::isa {

// What a program may hold at most; the verifier refuses more, so that nothing read from a file can
// make a reader, a verifier or a code generator use time or memory out of proportion.
inline constexpr uint32_t kMaxParameters = 1024;
inline constexpr uint32_t kMaxSharedArrays = 256;
inline constexpr uint64_t kMaxSharedBytes = 1 << 20;  // of the arrays with a count, together
inline constexpr uint32_t kMaxRegisters = 1 << 16;
inline constexpr uint32_t kMaxInstructions = 1 << 20;
inline constexpr uint32_t kMaxNesting = 64;
inline constexpr uint32_t kMaxNameLength = 255;

// A register: an index into Program::registers.
struct Register {
  static constexpr uint32_t kNone = 0xffffffff;
  uint32_t index = kNone;

  constexpr bool valid() const { return index != kNone; }
  bool operator==(const Register&) const = default;
};

enum class Access : uint8_t { read = 1, write = 2, read_write = 3 };

// An array parameter points at elements of `type` on the device; a scalar is passed by value.
struct Parameter {
  std::string name;
  bool is_array = false;
  DType type = DType::f32;
  Access access = Access::read;  // arrays only

  bool operator==(const Parameter&) const = default;
};

// Memory of a block, shared by its threads, undefined at the start. A count of 0 makes the array
// dynamic: it holds as many elements as fit the launch's shared bytes. Only the last one may be.
struct SharedArray {
  std::string name;
  DType type = DType::f32;
  uint32_t count = 0;

  bool operator==(const SharedArray&) const = default;
};

// Which fields mean something depends on info(op).form; the others keep their defaults.
struct Instruction {
  static constexpr uint32_t kNoSymbol = 0xffffffff;

  Opcode op = Opcode::imm;
  DType type = DType::f32;  // of the operation: result, or operands of a comparison or store
  DType from = DType::f32;  // convert, bitcast: the source type
  uint8_t aux = 0;          // id: the axis
  Register dst, a, b, c;
  uint32_t symbol = kNoSymbol;  // index into parameters or shared arrays
  uint64_t immediate = 0;       // imm: the bits, zero-extended

  bool operator==(const Instruction&) const = default;
};

struct Program {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<SharedArray> shared;
  std::vector<DType> registers;
  std::vector<Instruction> body;

  std::optional<uint32_t> find_parameter(std::string_view name) const {
    for (uint32_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].name == name) return i;
    return std::nullopt;
  }
  bool operator==(const Program&) const = default;
};

// Where the shared arrays of a block lie: each starts on a cache line, in order of declaration.
// The dynamic array, if there is one, starts at `fixed_bytes`.
struct SharedLayout {
  std::vector<uint64_t> offsets;  // one an array
  uint64_t fixed_bytes = 0;       // of all arrays with a count; a multiple of 64
};
SharedLayout shared_layout(const Program& program);

// Elements of shared array `index` when a launch gives `dynamic_bytes`.
uint64_t shared_count(const Program& program, uint32_t index, uint64_t dynamic_bytes);

// Letters, digits, '_' and '.', not starting with a digit or '.': what kernels, parameters and
// shared arrays may be called.
bool is_identifier(std::string_view name);

}  // namespace hologram::isa
