#include "isa/verifier.h"

#include <gtest/gtest.h>

#include "isa/builder.h"
#include "isa/uniformity.h"

namespace hologram::isa {
namespace {

std::string verdict(FunctionRef<void(Builder&)> write) {
  Builder b("k");
  write(b);
  const auto program = b.finish();
  return program ? "ok" : program.error().message();
}

TEST(Verifier, AssignmentOnBothSidesOfAnIfCounts) {
  EXPECT_EQ(verdict([](Builder& b) {
              const Register v = b.variable(DType::i32);
              const Register one = b.integer(DType::i32, 1);
              b.if_else(
                  b.boolean(true), [&] { b.assign(v, one); }, [&] { b.assign(v, one); });
              b.add(v, one);
            }),
            "ok");
  EXPECT_EQ(verdict([](Builder& b) {
              const Register v = b.variable(DType::i32);
              const Register one = b.integer(DType::i32, 1);
              b.if_(b.boolean(true), [&] { b.assign(v, one); });
              b.add(v, one);
            }),
            "kernel 'k': instruction 5 (add): %0 may be read before it is assigned");
}

TEST(Verifier, ASideThatLeavesDoesNotCount) {
  EXPECT_EQ(verdict([](Builder& b) {
              const Register v = b.variable(DType::i32);
              const Register one = b.integer(DType::i32, 1);
              b.if_else(
                  b.boolean(true), [&] { b.assign(v, one); }, [&] { b.return_(); });
              b.add(v, one);
            }),
            "ok");
}

TEST(Verifier, AForMayRunNoTime) {
  EXPECT_EQ(verdict([](Builder& b) {
              const Register v = b.variable(DType::i32);
              const Register one = b.integer(DType::i32, 1);
              b.for_(one, one, one, [&](Register i) { b.assign(v, i); });
              b.add(v, one);
            }),
            "kernel 'k': instruction 4 (add): %0 may be read before it is assigned");
}

TEST(Verifier, ALoopAssignsWhatAllItsBreaksHave) {
  EXPECT_EQ(verdict([](Builder& b) {
              const Register v = b.variable(DType::i32);
              const Register one = b.integer(DType::i32, 1);
              b.loop([&] {
                b.assign(v, one);
                b.break_();
              });
              b.add(v, one);
            }),
            "ok");
  EXPECT_EQ(verdict([](Builder& b) {
              const Register v = b.variable(DType::i32);
              const Register one = b.integer(DType::i32, 1);
              b.loop([&] {
                b.if_(b.boolean(true), [&] { b.break_(); });
                b.assign(v, one);
              });
              b.add(v, one);
            }),
            "kernel 'k': instruction 8 (add): %0 may be read before it is assigned");
}

TEST(Verifier, ACounterIsTheLoopsOwn) {
  EXPECT_EQ(verdict([](Builder& b) {
              const Register one = b.integer(DType::i32, 1);
              b.for_(one, one, one, [&](Register i) { b.assign(i, one); });
            }),
            "kernel 'k': instruction 2 (mov): assigns %1, the counter of a for around it");
  EXPECT_EQ(verdict([](Builder& b) {
              const Register one = b.integer(DType::i32, 1);
              Register counter;
              b.for_(one, one, one, [&](Register i) { counter = i; });
              b.add(counter, one);
            }),
            "kernel 'k': instruction 3 (add): %1 may be read before it is assigned");
}

TEST(Verifier, NestingHasALimit) {
  const auto nested = [](unsigned depth) {
    return verdict([depth](Builder& b) {
      for (unsigned i = 0; i < depth; ++i) b.begin_loop();
      for (unsigned i = 0; i < depth; ++i) b.end();
    });
  };
  EXPECT_EQ(nested(64), "ok");
  EXPECT_EQ(nested(65),
            "kernel 'k': instruction 64 (loop): more than 64 regions inside each other");
}

// A barrier somewhere in a kernel; `ok` where every thread gets there.
constexpr const char* kDivergent =
    "not all threads of a block may get here: it stands in or after control flow that depends on "
    "the thread";

bool allows_barrier(FunctionRef<void(Builder&)> write) {
  const std::string result = verdict(write);
  if (result == "ok") return true;
  EXPECT_TRUE(result.ends_with(kDivergent)) << result;
  return false;
}

TEST(Uniformity, FollowsValuesAndControlFlow) {
  const auto in_if = [](auto condition) {
    return allows_barrier([&](Builder& b) {
      const Register c = condition(b);
      b.if_(c, [&] { b.barrier(); });
    });
  };
  const auto zero = [](Builder& b) { return b.integer(DType::u32, 0); };
  EXPECT_TRUE(in_if([&](Builder& b) { return b.boolean(true); }));
  EXPECT_TRUE(in_if([&](Builder& b) { return b.value(b.scalar("s", DType::boolean)); }));
  EXPECT_TRUE(in_if([&](Builder& b) { return b.lt(b.id(Opcode::block_id), zero(b)); }));
  EXPECT_TRUE(in_if([&](Builder& b) { return b.lt(b.id(Opcode::block_size), zero(b)); }));
  EXPECT_FALSE(in_if([&](Builder& b) { return b.lt(b.id(Opcode::thread_id), zero(b)); }));
  EXPECT_FALSE(in_if([&](Builder& b) { return b.lt(b.id(Opcode::global_id), zero(b)); }));
  EXPECT_TRUE(in_if([&](Builder& b) {
    return b.lt(b.group(Opcode::group_add, b.id(Opcode::thread_id)), zero(b));
  }));
  EXPECT_TRUE(in_if(
      [&](Builder& b) { return b.load(b.array("r", DType::boolean, Access::read), zero(b)); }));
  EXPECT_FALSE(in_if([&](Builder& b) {
    return b.load(b.array("r", DType::boolean, Access::read), b.id(Opcode::thread_id));
  }));
  EXPECT_FALSE(in_if([&](Builder& b) {
    return b.load(b.array("rw", DType::boolean, Access::read_write), zero(b));
  }));
  EXPECT_FALSE(
      in_if([&](Builder& b) { return b.load(b.shared("s", DType::boolean, 1), zero(b)); }));
  EXPECT_FALSE(in_if([&](Builder& b) {
    return b.lt(b.atomic(Opcode::atomic_add, b.array("a", DType::u32, Access::read_write), zero(b),
                         zero(b)),
                zero(b));
  }));
}

TEST(Uniformity, AnAssignmentInDivergentCodeDiffers) {
  EXPECT_FALSE(allows_barrier([](Builder& b) {
    const Register v = b.variable(DType::boolean);
    b.assign(v, b.boolean(false));
    const Register zero = b.integer(DType::u32, 0);
    b.if_(b.lt(b.id(Opcode::thread_id), zero), [&] { b.assign(v, b.boolean(true)); });
    b.if_(v, [&] { b.barrier(); });
  }));
}

// The value that makes the if diverge is assigned behind it, and comes round by the loop.
TEST(Uniformity, GoesRoundLoops) {
  EXPECT_FALSE(allows_barrier([](Builder& b) {
    const Register v = b.variable(DType::boolean);
    const Register w = b.variable(DType::boolean);
    b.assign(v, b.boolean(false));
    b.assign(w, b.boolean(false));
    const Register zero = b.integer(DType::u32, 0);
    b.for_(zero, zero, b.integer(DType::u32, 1), [&](Register) {
      b.if_(v, [&] { b.barrier(); });
      b.assign(v, w);
      b.assign(w, b.lt(b.id(Opcode::thread_id), zero));
    });
  }));
}

TEST(Uniformity, LeavingALoopEarlyDiverges) {
  const auto loop_with = [](void (Builder::*jump)(), bool after) {
    return allows_barrier([&](Builder& b) {
      const Register zero = b.integer(DType::u32, 0);
      const Register c = b.lt(b.id(Opcode::thread_id), zero);
      b.loop([&] {
        b.if_(c, [&] { (b.*jump)(); });
        if (!after) b.barrier();
        b.if_(b.boolean(true), [&] { b.break_(); });
      });
      if (after) b.barrier();
    });
  };
  EXPECT_FALSE(loop_with(&Builder::break_, false));
  EXPECT_TRUE(loop_with(&Builder::break_, true));
  EXPECT_FALSE(loop_with(&Builder::continue_, false));
  EXPECT_TRUE(loop_with(&Builder::continue_, true));
  EXPECT_FALSE(loop_with(&Builder::return_, false));
  EXPECT_FALSE(loop_with(&Builder::return_, true));
}

TEST(Uniformity, ADivergentReturnForbidsBarriersAfterIt) {
  EXPECT_FALSE(allows_barrier([](Builder& b) {
    b.if_(b.lt(b.id(Opcode::global_id), b.integer(DType::u32, 0)), [&] { b.return_(); });
    b.barrier();
  }));
  EXPECT_TRUE(allows_barrier([](Builder& b) {
    b.if_(b.lt(b.id(Opcode::block_id), b.integer(DType::u32, 0)), [&] { b.return_(); });
    b.barrier();
  }));
  EXPECT_TRUE(allows_barrier([](Builder& b) {
    b.barrier();
    b.if_(b.lt(b.id(Opcode::global_id), b.integer(DType::u32, 0)), [&] { b.return_(); });
  }));
}

TEST(Uniformity, AForWithUniformBoundsIsUniform) {
  EXPECT_TRUE(allows_barrier([](Builder& b) {
    const Register one = b.integer(DType::u32, 1);
    b.for_(one, b.id(Opcode::grid_size), one,
           [&](Register i) { b.if_(b.lt(i, one), [&] { b.barrier(); }); });
  }));
  EXPECT_FALSE(allows_barrier([](Builder& b) {
    const Register one = b.integer(DType::u32, 1);
    b.for_(one, b.id(Opcode::thread_id), one, [&](Register) { b.barrier(); });
  }));
}

// As large, as nested and as divergent as a program may be: still a matter of milliseconds.
TEST(Verifier, IsLinearInTheSizeOfTheProgram) {
  Program p;
  p.name = "large";
  p.registers.assign(kMaxRegisters, DType::boolean);
  p.registers[0] = DType::u32;
  p.body = {{.op = Opcode::barrier},
            {.op = Opcode::thread_id, .type = DType::u32, .dst = {0}},
            {.op = Opcode::eq, .type = DType::u32, .dst = {1}, .a = {0}, .b = {0}}};
  const uint32_t depth = kMaxNesting - 1;
  for (uint32_t i = 0; i < depth; ++i) p.body.push_back({.op = Opcode::loop_begin});
  while (p.body.size() + depth + 3 <= kMaxInstructions) {
    p.body.push_back({.op = Opcode::if_begin, .a = {1}});
    p.body.push_back({.op = Opcode::return_});
    p.body.push_back({.op = Opcode::end});
  }
  for (uint32_t i = 0; i < depth; ++i) p.body.push_back({.op = Opcode::end});
  EXPECT_TRUE(verify(p));
}

// Hand-made programs can hold anything; the verifier must not trip over it.
TEST(Verifier, SurvivesNonsense) {
  Program p;
  p.name = "k";
  p.registers = {DType::i32};
  p.body.push_back({.op = static_cast<Opcode>(250)});
  EXPECT_EQ(verify(p).error().message(), "kernel 'k': instruction 0: there is no operation 250");
  p.body[0] = {.op = Opcode::mov, .type = static_cast<DType>(200), .dst = {0}, .a = {0}};
  EXPECT_EQ(verify(p).error().message(),
            "kernel 'k': instruction 0 (mov): does not work on not a type");
  p.body[0] = {.op = Opcode::mov, .type = DType::i32, .dst = {7}, .a = {0}};
  EXPECT_EQ(verify(p).error().message(),
            "kernel 'k': instruction 0 (mov): the result is %7, but there are 1 registers");
  p.body[0] = {.op = Opcode::barrier, .a = {0}};
  EXPECT_EQ(verify(p).error().message(),
            "kernel 'k': instruction 0 (barrier): a field this operation does not use is set");
}

}  // namespace
}  // namespace hologram::isa
