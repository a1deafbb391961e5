#include "isa/binary.h"

#include <array>
#include <cstring>
#include <string>

#include "isa/fields.h"
#include "isa/verifier.h"

namespace hologram::isa {
namespace {

constexpr std::array<char, 4> kMagic = {'H', 'I', 'S', 'A'};

// X(operation, number): written into files. Append, never renumber, never reuse.
#define HOLOGRAM_ISA_BINARY_CODES(X)                                                               \
  X(imm, 1)                                                                                        \
  X(mov, 2)                                                                                        \
  X(convert, 3) X(bitcast, 4) X(param, 5) X(length, 6) X(add, 10) X(sub, 11) X(mul, 12) X(div, 13) \
      X(rem, 14) X(min, 15) X(max, 16) X(abs, 17) X(neg, 18) X(mad, 19) X(fma, 20) X(bit_and, 30)  \
          X(bit_or, 31) X(bit_xor, 32) X(bit_not, 33) X(shl, 34) X(shr, 35) X(eq, 40) X(ne, 41)    \
              X(lt, 42) X(le, 43) X(gt, 44) X(ge, 45) X(select, 46) X(exp, 60) X(exp2, 61)         \
                  X(expm1, 62) X(log, 63) X(log1p, 64) X(log2, 65) X(log10, 66) X(sqrt, 67) X(     \
                      rsqrt, 68) X(sin, 69) X(cos, 70) X(tan, 71) X(asin, 72) X(acos, 73)          \
                      X(atan, 74) X(sinh, 75) X(cosh, 76) X(tanh, 77) X(asinh, 78) X(acosh, 79) X( \
                          atanh, 80) X(sigmoid, 81) X(erf, 82) X(pow, 83) X(floor, 84) X(ceil, 85) \
                          X(round, 86) X(trunc, 87) X(class_of, 110) X(class_mirror, 111) X(       \
                              class_neighbour, 112) X(thread_id, 120) X(block_id, 121)             \
                              X(block_size, 122) X(grid_size, 123) X(global_id, 124) X(load, 130)  \
                                  X(store, 131) X(load_shared, 132) X(store_shared, 133) X(        \
                                      atomic_add, 140) X(atomic_min, 141)                          \
                                      X(atomic_max, 142) X(atomic_exchange, 143) X(                \
                                          atomic_cas, 144) X(atomic_add_shared, 150)               \
                                          X(atomic_min_shared, 151) X(atomic_max_shared, 152) X(   \
                                              atomic_exchange_shared, 153)                         \
                                              X(atomic_cas_shared, 154) X(barrier, 170) X(         \
                                                  fence, 171) X(group_add, 175) X(group_mul, 176)  \
                                                  X(group_min, 177) X(group_max, 178)              \
                                                      X(if_begin, 200) X(if_else, 201)             \
                                                          X(for_begin, 202) X(loop_begin, 203)     \
                                                              X(end, 204) X(break_, 205)           \
                                                                  X(continue_, 206)                \
                                                                      X(return_, 207)

constexpr std::array<uint8_t, 256> kCodes = [] {
  std::array<uint8_t, 256> codes{};
#define X(op, number) codes[static_cast<uint8_t>(Opcode::op)] = number;
  HOLOGRAM_ISA_BINARY_CODES(X)
#undef X
  return codes;
}();

constexpr std::array<uint8_t, 256> kOperations = [] {
  std::array<uint8_t, 256> operations{};
  operations.fill(255);
#define X(op, number) operations[number] = static_cast<uint8_t>(Opcode::op);
  HOLOGRAM_ISA_BINARY_CODES(X)
#undef X
  return operations;
}();

// Every operation has a number, and no two have the same.
static_assert([] {
  for (unsigned op = 0; op < kOpcodeCount; ++op)
    if (kCodes[op] == 0 || kOperations[kCodes[op]] != op) return false;
  return true;
}());

class Writer {
 public:
  void byte(uint8_t value) { bytes_.push_back(std::byte{value}); }
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<uint8_t>(value) | 0x80);
    byte(static_cast<uint8_t>(value));
  }
  void name(const std::string& text) {
    number(text.size());
    for (char c : text) byte(static_cast<uint8_t>(c));
  }
  void type(DType type) { byte(static_cast<uint8_t>(type)); }

  void instruction(const Instruction& i) {
    byte(binary_code(i.op));
    const uint16_t fields = fields_of(info(i.op).form);
    if (fields & kFieldType) type(i.type);
    if (fields & kFieldFrom) type(i.from);
    if (fields & kFieldAxis) byte(i.aux);
    if (fields & kFieldDst) number(i.dst.index);
    if (fields & kFieldA) number(i.a.index);
    if (fields & kFieldB) number(i.b.index);
    if (fields & kFieldC) number(i.c.index);
    if (fields & kFieldSymbol) number(i.symbol);
    if (fields & kFieldImmediate) number(i.immediate);
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<Program> program() {
    for (char c : kMagic) {
      HOLOGRAM_TRY(const uint8_t byte, this->byte("the magic number"));
      if (byte != static_cast<uint8_t>(c))
        return fail(ErrorCode::corrupt,
                    "offset 0: not a binary program: it does not begin with HISA");
    }
    HOLOGRAM_TRY(const uint64_t version, number("the version", ~uint64_t{0}));
    if (version != kBinaryVersion)
      return fail(ErrorCode::unsupported,
                  "binary program of version {}; this reader knows version {}", version,
                  kBinaryVersion);
    Program program;
    HOLOGRAM_TRY(program.name, name());
    HOLOGRAM_CHECK(parameters(program));
    HOLOGRAM_CHECK(shared(program));
    HOLOGRAM_TRY(const uint64_t registers, count("registers", kMaxRegisters, 1));
    program.registers.reserve(registers);
    for (uint64_t i = 0; i < registers; ++i) {
      HOLOGRAM_TRY(const DType type, this->type());
      program.registers.push_back(type);
    }
    HOLOGRAM_TRY(const uint64_t instructions, count("instructions", kMaxInstructions, 1));
    program.body.reserve(instructions);
    for (uint64_t i = 0; i < instructions; ++i) {
      HOLOGRAM_TRY(const Instruction instruction, this->instruction());
      program.body.push_back(instruction);
    }
    if (position_ != bytes_.size())
      return fail(ErrorCode::corrupt, "offset {}: {} bytes follow the program", position_,
                  bytes_.size() - position_);
    HOLOGRAM_CHECK(verify(program));
    return program;
  }

 private:
  Result<uint8_t> byte(std::string_view what, std::string_view prefix = "") {
    if (position_ == bytes_.size())
      return fail(ErrorCode::corrupt, "offset {}: the bytes end inside {}{}", position_, prefix,
                  what);
    return static_cast<uint8_t>(bytes_[position_++]);
  }

  // A varint in its shortest spelling, at most `largest`. Errors name it by `prefix` and `what`.
  Result<uint64_t> number(std::string_view what, uint64_t largest, std::string_view prefix = "") {
    const size_t start = position_;
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      HOLOGRAM_TRY(const uint8_t part, byte(what, prefix));
      if (shift == 63 && part > 1)
        return fail(ErrorCode::corrupt, "offset {}: {}{} does not fit 64 bits", start, prefix,
                    what);
      value |= uint64_t{part & 0x7fu} << shift;
      if (part & 0x80) continue;
      if (part == 0 && shift != 0)
        return fail(ErrorCode::corrupt, "offset {}: {}{} is written with more bytes than it needs",
                    start, prefix, what);
      if (value > largest)
        return fail(ErrorCode::corrupt, "offset {}: {}{} is {}, at most {} is possible", start,
                    prefix, what, value, largest);
      return value;
    }
  }

  // A count of things that take at least `size` bytes each: nothing is allocated for things that
  // cannot be there.
  Result<uint64_t> count(std::string_view what, uint64_t largest, size_t size) {
    const size_t start = position_;
    HOLOGRAM_TRY(const uint64_t value, number(what, largest, "the number of "));
    if (value > (bytes_.size() - position_) / size)
      return fail(ErrorCode::corrupt, "offset {}: {} {} do not fit the {} bytes left", start, value,
                  what, bytes_.size() - position_);
    return value;
  }

  Result<std::string> name() {
    HOLOGRAM_TRY(const uint64_t length, count("characters of a name", kMaxNameLength, 1));
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + position_, length);
    position_ += length;
    return text;
  }

  Result<DType> type() {
    const size_t start = position_;
    HOLOGRAM_TRY(const uint8_t code, byte("a type"));
    const auto type = dtype_from_code(code);
    if (!type) return fail(ErrorCode::corrupt, "offset {}: there is no type {}", start, code);
    return *type;
  }

  Status parameters(Program& program) {
    HOLOGRAM_TRY(const uint64_t count, this->count("parameters", kMaxParameters, 3));
    for (uint64_t i = 0; i < count; ++i) {
      Parameter parameter;
      HOLOGRAM_TRY(parameter.name, name());
      const size_t start = position_;
      HOLOGRAM_TRY(const uint8_t kind, byte("a parameter"));
      if (kind > 3)
        return fail(ErrorCode::corrupt, "offset {}: there is no kind of parameter {}", start, kind);
      parameter.is_array = kind != 0;
      if (kind != 0) parameter.access = static_cast<Access>(kind);
      HOLOGRAM_TRY(parameter.type, type());
      program.parameters.push_back(std::move(parameter));
    }
    return {};
  }

  Status shared(Program& program) {
    HOLOGRAM_TRY(const uint64_t count, this->count("shared arrays", kMaxSharedArrays, 3));
    for (uint64_t i = 0; i < count; ++i) {
      SharedArray array;
      HOLOGRAM_TRY(array.name, name());
      HOLOGRAM_TRY(array.type, type());
      HOLOGRAM_TRY(const uint64_t elements, number("a shared array's size", 0xffffffff));
      array.count = static_cast<uint32_t>(elements);
      program.shared.push_back(std::move(array));
    }
    return {};
  }

  Result<Instruction> instruction() {
    const size_t start = position_;
    HOLOGRAM_TRY(const uint8_t code, byte("an instruction"));
    const auto op = opcode_from_binary_code(code);
    if (!op) return fail(ErrorCode::corrupt, "offset {}: there is no operation {}", start, code);
    Instruction i;
    i.op = *op;
    const uint16_t fields = fields_of(info(*op).form);
    if (fields & kFieldType) {
      HOLOGRAM_TRY(i.type, type());
    }
    if (fields & kFieldFrom) {
      HOLOGRAM_TRY(i.from, type());
    }
    if (fields & kFieldAxis) {
      HOLOGRAM_TRY(i.aux, byte("an axis"));
    }
    for (const auto& [field, place] : {std::pair{kFieldDst, &i.dst}, std::pair{kFieldA, &i.a},
                                       std::pair{kFieldB, &i.b}, std::pair{kFieldC, &i.c}}) {
      if (!(fields & field)) continue;
      HOLOGRAM_TRY(const uint64_t index, number("a register", kMaxRegisters - 1));
      place->index = static_cast<uint32_t>(index);
    }
    if (fields & kFieldSymbol) {
      HOLOGRAM_TRY(const uint64_t symbol, number("a symbol", kMaxParameters - 1));
      i.symbol = static_cast<uint32_t>(symbol);
    }
    if (fields & kFieldImmediate) {
      HOLOGRAM_TRY(i.immediate, number("an immediate", ~uint64_t{0}));
    }
    return i;
  }

  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

}  // namespace

uint8_t binary_code(Opcode op) { return kCodes[static_cast<uint8_t>(op)]; }

std::optional<Opcode> opcode_from_binary_code(uint8_t code) {
  if (kOperations[code] == 255) return std::nullopt;
  return static_cast<Opcode>(kOperations[code]);
}

std::vector<std::byte> encode(const Program& program) {
  Writer out;
  for (char c : kMagic) out.byte(static_cast<uint8_t>(c));
  out.number(kBinaryVersion);
  out.name(program.name);
  out.number(program.parameters.size());
  for (const Parameter& parameter : program.parameters) {
    out.name(parameter.name);
    out.byte(parameter.is_array ? static_cast<uint8_t>(parameter.access) : 0);
    out.type(parameter.type);
  }
  out.number(program.shared.size());
  for (const SharedArray& array : program.shared) {
    out.name(array.name);
    out.type(array.type);
    out.number(array.count);
  }
  out.number(program.registers.size());
  for (DType type : program.registers) out.type(type);
  out.number(program.body.size());
  for (const Instruction& instruction : program.body) out.instruction(instruction);
  return out.take();
}

Result<Program> decode(std::span<const std::byte> bytes) { return Reader(bytes).program(); }

}  // namespace hologram::isa
