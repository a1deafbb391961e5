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
// clang-format off
#define HOLOGRAM_ISA_BINARY_CODES(X)                                                        \
  X(imm, 1) X(mov, 2) X(convert, 3) X(bitcast, 4) X(param, 5) X(length, 6)                  \
  X(add, 10) X(sub, 11) X(mul, 12) X(div, 13) X(rem, 14) X(min, 15) X(max, 16) X(abs, 17)   \
  X(neg, 18) X(mad, 19) X(fma, 20)                                                          \
  X(bit_and, 30) X(bit_or, 31) X(bit_xor, 32) X(bit_not, 33) X(shl, 34) X(shr, 35)          \
  X(eq, 40) X(ne, 41) X(lt, 42) X(le, 43) X(gt, 44) X(ge, 45) X(select, 46)                 \
  X(exp, 60) X(exp2, 61) X(expm1, 62) X(log, 63) X(log1p, 64) X(log2, 65) X(log10, 66)      \
  X(sqrt, 67) X(rsqrt, 68) X(sin, 69) X(cos, 70) X(tan, 71) X(asin, 72) X(acos, 73)         \
  X(atan, 74) X(sinh, 75) X(cosh, 76) X(tanh, 77) X(asinh, 78) X(acosh, 79) X(atanh, 80)    \
  X(sigmoid, 81) X(erf, 82) X(pow, 83) X(floor, 84) X(ceil, 85) X(round, 86) X(trunc, 87)   \
  X(class_of, 110) X(class_mirror, 111) X(class_neighbour, 112)                             \
  X(thread_id, 120) X(block_id, 121) X(block_size, 122) X(grid_size, 123) X(global_id, 124) \
  X(load, 130) X(store, 131) X(load_shared, 132) X(store_shared, 133)                       \
  X(atomic_add, 140) X(atomic_min, 141) X(atomic_max, 142) X(atomic_exchange, 143)          \
  X(atomic_cas, 144)                                                                        \
  X(atomic_add_shared, 150) X(atomic_min_shared, 151) X(atomic_max_shared, 152)             \
  X(atomic_exchange_shared, 153) X(atomic_cas_shared, 154)                                  \
  X(barrier, 170) X(fence, 171)                                                             \
  X(group_add, 175) X(group_mul, 176) X(group_min, 177) X(group_max, 178)                   \
  X(if_begin, 200) X(if_else, 201) X(for_begin, 202) X(loop_begin, 203) X(end, 204)         \
  X(break_, 205) X(continue_, 206) X(return_, 207)
// clang-format on

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

// What cannot be read is remembered, once, and reads as zero from then on: a Result a byte would
// take longer than all the rest of opening a small archive.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Status read(Program& program) {
    for (char c : kMagic)
      if (byte("the magic number") != static_cast<uint8_t>(c))
        refuse("offset 0: not a binary program: it does not begin with HISA");
    const uint64_t version = number("the version", ~uint64_t{0});
    if (!error_ && version != kBinaryVersion)
      return fail(ErrorCode::unsupported,
                  "binary program of version {}; this reader knows version {}", version,
                  kBinaryVersion);
    name(program.name);
    parameters(program);
    shared(program);
    program.registers.resize(count("registers", kMaxRegisters, 1));
    for (DType& type : program.registers) type = this->type();
    program.body.assign(count("instructions", kMaxInstructions, 1), Instruction());
    for (Instruction& i : program.body) {
      instruction(i);
      if (error_) break;
    }
    if (!error_ && position_ != bytes_.size())
      refuse("offset {}: {} bytes follow the program", position_, bytes_.size() - position_);
    if (error_) return std::unexpected(*std::move(error_));
    return verify(program);
  }

 private:
  // The first time only; whatever follows comes of it.
  template <typename... Args>
  [[gnu::cold, gnu::noinline]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
    if (!error_) error_ = fail(ErrorCode::corrupt, format, std::forward<Args>(args)...).error();
    position_ = bytes_.size();
  }

  uint8_t byte(const char* what, const char* prefix = "") {
    if (position_ < bytes_.size()) return static_cast<uint8_t>(bytes_[position_++]);
    refuse("offset {}: the bytes end inside {}{}", position_, prefix, what);
    return 0;
  }

  // A varint in its shortest spelling, at most `largest`. Errors name it by `prefix` and `what`.
  uint64_t number(const char* what, uint64_t largest, const char* prefix = "") {
    if (position_ < bytes_.size()) {
      const auto first = static_cast<uint8_t>(bytes_[position_]);
      if (first < 0x80 && first <= largest) {
        ++position_;
        return first;
      }
    }
    return long_number(what, largest, prefix);
  }
  [[gnu::noinline]] uint64_t long_number(const char* what, uint64_t largest, const char* prefix) {
    const size_t start = position_;
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t part = byte(what, prefix);
      if (error_) return 0;
      if (shift == 63 && part > 1) {
        refuse("offset {}: {}{} does not fit 64 bits", start, prefix, what);
        return 0;
      }
      value |= uint64_t{part & 0x7fu} << shift;
      if (part & 0x80) continue;
      if (part == 0 && shift != 0)
        refuse("offset {}: {}{} is written with more bytes than it needs", start, prefix, what);
      else if (value > largest)
        refuse("offset {}: {}{} is {}, at most {} is possible", start, prefix, what, value,
               largest);
      return error_ ? 0 : value;
    }
  }

  // A count of things that take at least `size` bytes each: nothing is allocated for things that
  // cannot be there.
  uint64_t count(const char* what, uint64_t largest, size_t size) {
    const size_t start = position_;
    const uint64_t value = number(what, largest, "the number of ");
    if (value <= (bytes_.size() - position_) / size) return value;
    refuse("offset {}: {} {} do not fit the {} bytes left", start, value, what,
           bytes_.size() - position_);
    return 0;
  }

  void name(std::string& text) {
    const uint64_t length = count("characters of a name", kMaxNameLength, 1);
    text.assign(reinterpret_cast<const char*>(bytes_.data()) + position_, length);
    position_ += length;
  }

  DType type() {
    const size_t start = position_;
    const uint8_t code = byte("a type");
    const auto type = dtype_from_code(code);
    if (type) return *type;
    refuse("offset {}: there is no type {}", start, code);
    return DType::f32;
  }

  void parameters(Program& program) {
    program.parameters.resize(count("parameters", kMaxParameters, 3));
    for (Parameter& parameter : program.parameters) {
      name(parameter.name);
      const size_t start = position_;
      const uint8_t kind = byte("a parameter");
      if (kind > 3) refuse("offset {}: there is no kind of parameter {}", start, kind);
      parameter.is_array = kind != 0;
      parameter.access = kind != 0 ? static_cast<Access>(kind) : Access::read;
      parameter.type = type();
    }
  }

  void shared(Program& program) {
    program.shared.resize(count("shared arrays", kMaxSharedArrays, 3));
    for (SharedArray& array : program.shared) {
      name(array.name);
      array.type = type();
      array.count = static_cast<uint32_t>(number("a shared array's size", 0xffffffff));
    }
  }

  void instruction(Instruction& i) {
    const size_t start = position_;
    const uint8_t code = byte("an instruction");
    const auto op = opcode_from_binary_code(code);
    if (!op) return refuse("offset {}: there is no operation {}", start, code);
    i.op = *op;
    const uint16_t fields = fields_of(info(*op).form);
    const auto reg = [&] { return static_cast<uint32_t>(number("a register", kMaxRegisters - 1)); };
    if (fields & kFieldType) i.type = type();
    if (fields & kFieldFrom) i.from = type();
    if (fields & kFieldAxis) i.aux = byte("an axis");
    if (fields & kFieldDst) i.dst.index = reg();
    if (fields & kFieldA) i.a.index = reg();
    if (fields & kFieldB) i.b.index = reg();
    if (fields & kFieldC) i.c.index = reg();
    if (fields & kFieldSymbol)
      i.symbol = static_cast<uint32_t>(number("a symbol", kMaxParameters - 1));
    if (fields & kFieldImmediate) i.immediate = number("an immediate", ~uint64_t{0});
  }

  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  std::optional<Error> error_;
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

Status decode(std::span<const std::byte> bytes, Program& program) {
  return Reader(bytes).read(program);
}

Result<Program> decode(std::span<const std::byte> bytes) {
  Program program;
  HOLOGRAM_CHECK(decode(bytes, program));
  return program;
}

}  // namespace hologram::isa
