#include "isa/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hologram::isa {
namespace {

using ::testing::HasSubstr;

TEST(Builder, WritesAKernel) {
  Builder b("saxpy");
  const auto a = b.scalar("a", DType::f32);
  const auto x = b.array("x", DType::f32, Access::read);
  const auto y = b.array("y", DType::f32, Access::read_write);
  const Register i = b.id(Opcode::global_id, 0, DType::u64);
  b.if_(b.lt(i, b.length(x)), [&] {
    const Register factor = b.value(a);
    const Register xi = b.load(x, i);
    b.store(y, i, b.ternary(Opcode::fma, factor, xi, b.load(y, i)));
  });
  const auto program = b.finish();
  ASSERT_TRUE(program) << program.error().to_string();
  EXPECT_EQ(program->name, "saxpy");
  EXPECT_EQ(program->parameters.size(), 3u);
  std::vector<Opcode> ops;
  for (const Instruction& instruction : program->body) ops.push_back(instruction.op);
  EXPECT_THAT(ops, ::testing::ElementsAre(Opcode::global_id, Opcode::length, Opcode::lt,
                                          Opcode::if_begin, Opcode::param, Opcode::load,
                                          Opcode::load, Opcode::fma, Opcode::store, Opcode::end));
}

TEST(Builder, ConstantsHaveTheirTypesBits) {
  Builder b("constants");
  b.integer(DType::i8, -1);
  b.integer(DType::i64, INT64_MIN);
  b.integer(DType::i16, -32768);
  b.unsigned_integer(DType::u64, ~uint64_t{0});
  b.floating(DType::f32, 0.1);
  b.floating(DType::f16, 1.0);
  b.floating(DType::bf16, -2.0);
  b.floating(DType::f64, INFINITY);
  b.boolean(true);
  const auto program = b.finish();
  ASSERT_TRUE(program) << program.error().to_string();
  std::vector<uint64_t> bits;
  for (const Instruction& instruction : program->body) bits.push_back(instruction.immediate);
  EXPECT_THAT(bits, ::testing::ElementsAre(0xffu, uint64_t{1} << 63, 0x8000u, ~uint64_t{0},
                                           0x3dcccccdu, 0x3c00u, 0xc000u, 0x7ff0000000000000u, 1u));
}

TEST(Builder, LeavesOutWhatFollowsAJump) {
  Builder b("dead");
  const Register c = b.boolean(true);
  b.loop([&] {
    b.if_else(
        c,
        [&] {
          b.break_();
          b.fence();
          b.if_(c, [&] { b.fence(); });
        },
        [&] {
          b.continue_();
          b.loop([&] { b.break_(); });
        });
    b.fence();
  });
  b.return_();
  b.barrier();
  const auto program = b.finish();
  ASSERT_TRUE(program) << program.error().to_string();
  std::vector<Opcode> ops;
  for (const Instruction& instruction : program->body) ops.push_back(instruction.op);
  EXPECT_THAT(
      ops, ::testing::ElementsAre(Opcode::imm, Opcode::loop_begin, Opcode::if_begin, Opcode::break_,
                                  Opcode::if_else, Opcode::continue_, Opcode::end, Opcode::fence,
                                  Opcode::end, Opcode::return_));
}

TEST(Builder, ConvertToTheSameTypeIsNothing) {
  Builder b("same");
  const Register x = b.integer(DType::i32, 1);
  EXPECT_EQ(b.convert(x, DType::i32), x);
  EXPECT_EQ(b.bitcast(x, DType::i32), x);
  EXPECT_NE(b.bitcast(x, DType::f32), x);
}

std::string mistake_of(FunctionRef<void(Builder&)> write) {
  Builder b("bad");
  write(b);
  const auto program = b.finish();
  if (program) return "no mistake";
  EXPECT_EQ(program.error().code(), ErrorCode::verify_error);
  return program.error().message();
}

TEST(Builder, ReportsTheFirstMistake) {
  EXPECT_EQ(mistake_of([](Builder& b) {
              const Register one = b.integer(DType::i32, 1);
              b.add(one, b.floating(DType::f32, 1));
              b.break_();
            }),
            "kernel 'bad': instruction 2: add: operand %1 is f32, expected i32");
  EXPECT_EQ(mistake_of([](Builder& b) { b.integer(DType::u8, -1); }),
            "kernel 'bad': instruction 0: imm: -1 does not fit u8");
  EXPECT_EQ(mistake_of([](Builder& b) { b.integer(DType::i8, 128); }),
            "kernel 'bad': instruction 0: imm: 128 does not fit i8");
  EXPECT_EQ(mistake_of([](Builder& b) { b.integer(DType::f32, -1); }),
            "kernel 'bad': instruction 0: imm: an integer constant of type f32");
  EXPECT_EQ(mistake_of([](Builder& b) { b.break_(); }),
            "kernel 'bad': instruction 0: break outside a for or loop");
  EXPECT_EQ(mistake_of([](Builder& b) { b.end(); }),
            "kernel 'bad': instruction 0: end without an open if, for or loop");
  EXPECT_EQ(mistake_of([](Builder& b) { b.begin_else(); }),
            "kernel 'bad': instruction 0: else without an if that is still open");
  EXPECT_EQ(mistake_of([](Builder& b) { b.begin_loop(); }),
            "kernel 'bad': instruction 1: the program ends inside 1 open region");
  EXPECT_EQ(mistake_of([](Builder& b) { b.unary(Opcode::exp, Register{}); }),
            "kernel 'bad': instruction 0: exp: an operand is not a register of this builder");
  EXPECT_EQ(mistake_of([](Builder& b) { b.id(Opcode::thread_id, 3); }),
            "kernel 'bad': instruction 0: thread_id: axis 3 is not 0, 1 or 2");
  EXPECT_EQ(mistake_of([](Builder& b) { b.unary(Opcode::add, b.integer(DType::i32, 1)); }),
            "kernel 'bad': instruction 1: add is not unary");
}

TEST(Builder, FinishVerifies) {
  EXPECT_THAT(mistake_of([](Builder& b) { b.unary(Opcode::exp, b.integer(DType::i32, 1)); }),
              HasSubstr("instruction 1 (exp): does not work on i32"));
  EXPECT_THAT(mistake_of([](Builder& b) {
                const Register v = b.variable(DType::i32);
                b.add(v, v);
              }),
              HasSubstr("%0 may be read before it is assigned"));
}

}  // namespace
}  // namespace hologram::isa
