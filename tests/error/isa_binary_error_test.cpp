// Bytes and hand-made programs that must be refused: with which code and in which words.
#include <gtest/gtest.h>

#include <string>

#include "isa/binary.h"
#include "isa/verifier.h"

namespace hologram::isa {
namespace {

using namespace std::string_literals;

struct Refused {
  std::string bytes;
  ErrorCode code;
  const char* message;
};

// magic, version, name "k"
const std::string kStart = "HISA\x01\x01k"s;

const Refused kRefused[] = {
    {""s, ErrorCode::corrupt, "offset 0: the bytes end inside the magic number"},
    {"HOLO"s, ErrorCode::corrupt, "offset 0: not a binary program: it does not begin with HISA"},
    {"HISA"s, ErrorCode::corrupt, "offset 4: the bytes end inside the version"},
    {"HISA\x02"s, ErrorCode::unsupported,
     "binary program of version 2; this reader knows version 1"},
    {"HISA\x81\x00"s, ErrorCode::corrupt,
     "offset 4: the version is written with more bytes than it needs"},
    {"HISA\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"s, ErrorCode::corrupt,
     "offset 4: the version does not fit 64 bits"},
    {"HISA\x01\xff\x7f"s, ErrorCode::corrupt,
     "offset 5: the number of characters of a name is 16383, at most 255 is possible"},
    {"HISA\x01\x05k"s, ErrorCode::corrupt,
     "offset 5: 5 characters of a name do not fit the 1 bytes left"},
    {"HISA\x01\x01!\x00\x00\x00\x00"s, ErrorCode::verify_error,
     "kernel '!': kernel '!': a name is 1 to 255 letters, digits, '_' and '.', starting with a "
     "letter or '_'"},
    {kStart + "\xff\xff\x7f", ErrorCode::corrupt,
     "offset 7: the number of parameters is 2097151, at most 1024 is possible"},
    {kStart + "\x02\x01x\x01\x0b"s, ErrorCode::corrupt,
     "offset 7: 2 parameters do not fit the 4 bytes left"},
    {kStart + "\x01\x01x\x04\x0b\x00\x00\x00"s, ErrorCode::corrupt,
     "offset 10: there is no kind of parameter 4"},
    {kStart + "\x01\x01x\x01\x0d\x00\x00\x00"s, ErrorCode::corrupt,
     "offset 11: there is no type 13"},
    {kStart + "\x01\x01x\x01\x20\x00\x00\x00"s, ErrorCode::verify_error,
     "kernel 'k': parameter 'x': i4 is not a type kernels compute with"},
    {kStart + "\x00\x01\x01s\x0b\xff\xff\xff\xff\x1f\x00\x00"s, ErrorCode::corrupt,
     "offset 12: a shared array's size is 8589934591, at most 4294967295 is possible"},
    {kStart + "\x00\x00\xff\xff\x03\x0b"s, ErrorCode::corrupt,
     "offset 9: 65535 registers do not fit the 1 bytes left"},
    {kStart + "\x00\x00\x00\xff\xff\x3f\xaa"s, ErrorCode::corrupt,
     "offset 10: 1048575 instructions do not fit the 1 bytes left"},
    {kStart + "\x00\x00\x00\x01\x00"s, ErrorCode::corrupt, "offset 11: there is no operation 0"},
    {kStart + "\x00\x00\x00\x01\x01"s, ErrorCode::corrupt,
     "offset 12: the bytes end inside a type"},
    {kStart + "\x00\x00\x00\x01\xaa\x00"s, ErrorCode::corrupt,
     "offset 12: 1 bytes follow the program"},
    {kStart + "\x00\x00\x00\x01\xcc"s, ErrorCode::verify_error,
     "kernel 'k': instruction 0 (end): without an if, for or loop"},
    {kStart + "\x00\x00\x01\x0b\x01\x02\x0b\x00\x00"s, ErrorCode::verify_error,
     "kernel 'k': instruction 0 (mov): %0 may be read before it is assigned"},
    {kStart + "\x00\x00\x01\x03\x01\x01\x03\x07\x00"s, ErrorCode::verify_error,
     "kernel 'k': instruction 0 (imm): the result is %7, but there are 1 registers"},
    {kStart + "\x00\x00\x01\x05\x01\x01\x05\x00\x80\x02"s, ErrorCode::verify_error,
     "kernel 'k': instruction 0 (imm): immediate 0x100 does not fit u8"},
    {kStart + "\x00\x00\x01\x07\x01\x78\x07\x03\x00"s, ErrorCode::verify_error,
     "kernel 'k': instruction 0 (thread_id): axis 3 is not 0, 1 or 2"},
    {kStart + "\x00\x00\x01\x0b\x01\x05\x0b\x00\x02"s, ErrorCode::verify_error,
     "kernel 'k': instruction 0 (param): there is no parameter 2"},
};

TEST(IsaBinaryError, EachIsRefused) {
  for (const Refused& refused : kRefused) {
    const auto program = decode(std::as_bytes(std::span(refused.bytes)));
    ASSERT_FALSE(program) << refused.message;
    EXPECT_EQ(program.error().message(), refused.message);
    EXPECT_EQ(program.error().code(), refused.code) << refused.message;
  }
}

// ---- programs made by hand

Program kernel(std::vector<Instruction> body) {
  Program program;
  program.name = "k";
  program.parameters = {{"x", true, DType::f32, Access::read_write}, {"s", false, DType::i32}};
  program.shared = {{"tile", DType::f32, 16}};
  program.registers = {DType::f32, DType::i32, DType::boolean, DType::u32};
  program.body = std::move(body);
  return program;
}

struct RefusedProgram {
  std::vector<Instruction> body;
  const char* message;
};

const Instruction kF32 = {.op = Opcode::imm, .type = DType::f32, .dst = {0}};
const Instruction kI32 = {.op = Opcode::imm, .type = DType::i32, .dst = {1}};

const RefusedProgram kPrograms[] = {
    {{{.op = Opcode::add, .type = DType::boolean, .dst = {2}, .a = {2}, .b = {2}}},
     "kernel 'k': instruction 0 (add): does not work on bool"},
    {{{.op = Opcode::add, .type = DType::i4, .dst = {1}, .a = {1}, .b = {1}}},
     "kernel 'k': instruction 0 (add): does not work on i4"},
    {{kF32, {.op = Opcode::neg, .type = DType::i32, .dst = {1}, .a = {0}}},
     "kernel 'k': instruction 1 (neg): the first operand %0 is f32, expected i32"},
    {{kI32, {.op = Opcode::shl, .type = DType::i32, .dst = {1}, .a = {1}, .b = {1}}},
     "kernel 'k': instruction 1 (shl): the second operand %1 is i32, expected u32"},
    {{kI32, {.op = Opcode::lt, .type = DType::i32, .dst = {1}, .a = {1}, .b = {1}}},
     "kernel 'k': instruction 1 (lt): the result %1 is i32, expected bool"},
    {{{.op = Opcode::mov, .type = DType::i32, .dst = {1}}},
     "kernel 'k': instruction 0 (mov): the first operand is missing"},
    {{{.op = Opcode::imm, .type = DType::i32}},
     "kernel 'k': instruction 0 (imm): the result is missing"},
    {{{.op = Opcode::length, .type = DType::u32, .dst = {3}, .symbol = 0}},
     "kernel 'k': instruction 0 (length): does not work on u32"},
    {{{.op = Opcode::load_shared, .type = DType::f32, .dst = {0}, .a = {1}, .symbol = 3}},
     "kernel 'k': instruction 0 (load_shared): there is no shared array 3"},
    {{kI32, {.op = Opcode::load, .type = DType::i32, .dst = {1}, .a = {1}, .symbol = 0}},
     "kernel 'k': instruction 1 (load): 'x' is of f32, the operation of i32"},
    {{{.op = Opcode::convert, .type = DType::i32, .from = DType::string, .dst = {1}, .a = {1}}},
     "kernel 'k': instruction 0 (convert): cannot convert from string"},
    {{{.op = Opcode::fence, .immediate = 3}},
     "kernel 'k': instruction 0 (fence): a field this operation does not use is set"},
    {{{.op = Opcode::loop_begin}}, "kernel 'k': instruction 0 (loop): is never closed by an end"},
};

TEST(IsaProgramError, EachIsRefused) {
  for (const RefusedProgram& refused : kPrograms) {
    const Status status = verify(kernel(refused.body));
    ASSERT_FALSE(status) << refused.message;
    EXPECT_EQ(status.error().message(), refused.message);
    EXPECT_EQ(status.error().code(), ErrorCode::verify_error);
  }
}

TEST(IsaProgramError, BadDeclarations) {
  const auto refusal = [](void (*spoil)(Program&)) {
    Program program = kernel({});
    spoil(program);
    const Status status = verify(program);
    return status ? "ok" : status.error().message();
  };
  EXPECT_EQ(refusal([](Program&) {}), "ok");
  EXPECT_EQ(refusal([](Program& p) { p.registers.push_back(DType::complex64); }),
            "kernel 'k': register %4: complex64 is not a type kernels compute with");
  EXPECT_EQ(refusal([](Program& p) { p.registers.resize(70'000, DType::f32); }),
            "kernel 'k': 70000 registers, at most 65536 are allowed");
  EXPECT_EQ(refusal([](Program& p) { p.body.resize((1 << 20) + 1, {.op = Opcode::fence}); }),
            "kernel 'k': 1048577 instructions, at most 1048576 are allowed");
  EXPECT_EQ(refusal([](Program& p) { p.parameters.resize(1025); }),
            "kernel 'k': 1025 parameters, at most 1024 are allowed");
  EXPECT_EQ(refusal([](Program& p) { p.shared.resize(257); }),
            "kernel 'k': 257 shared arrays, at most 256 are allowed");
  EXPECT_EQ(refusal([](Program& p) { p.parameters[1].access = Access::write; }),
            "kernel 'k': parameter 's': access 2 is not possible for a scalar");
  EXPECT_EQ(refusal([](Program& p) { p.parameters[0].access = static_cast<Access>(0); }),
            "kernel 'k': parameter 'x': access 0 is not possible for an array");
  EXPECT_EQ(refusal([](Program& p) { p.shared[0].name = "x"; }),
            "kernel 'k': 'x' is declared twice");
}

}  // namespace
}  // namespace hologram::isa
