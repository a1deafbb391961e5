#include "bench/codegen/kernels.h"

#include "isa/builder.h"

namespace hologram::bench {

using isa::Access;
using isa::Builder;
using isa::Opcode;
using isa::Program;
using isa::Register;

namespace {

// out[i] = value(i) for i < n.
template <typename Value>
Program map(const char* name, int inputs, DType type, Value value) {
  Builder p(name);
  std::vector<Builder::Array> in;
  for (int k = 0; k < inputs; ++k)
    in.push_back(p.array("in" + std::to_string(k), type, Access::read));
  const auto out = p.array("out", type, Access::write);
  const auto n = p.scalar("n", DType::u32);
  const Register i = p.id(Opcode::global_id);
  p.if_(p.lt(i, p.value(n)), [&] { p.store(out, i, value(p, in, i)); });
  return *p.finish();
}

using Arrays = const std::vector<Builder::Array>&;

}  // namespace

Program vector_add() {
  return map("vector_add", 2, DType::f32, [](Builder& p, Arrays in, Register i) {
    return p.add(p.load(in[0], i), p.load(in[1], i));
  });
}

Program relu() {
  return map("relu", 1, DType::f32, [](Builder& p, Arrays in, Register i) {
    return p.binary(Opcode::max, p.load(in[0], i), p.floating(DType::f32, 0));
  });
}

Program axpy() {
  return map("axpy", 2, DType::f32, [](Builder& p, Arrays in, Register i) {
    const Register a = p.floating(DType::f32, 1.5);
    return p.ternary(Opcode::fma, a, p.load(in[0], i), p.load(in[1], i));
  });
}

Program gelu() {
  return map("gelu", 1, DType::f32, [](Builder& p, Arrays in, Register i) {
    const Register x = p.load(in[0], i);
    const Register e = p.unary(Opcode::erf, p.mul(x, p.floating(DType::f32, 0.70710678)));
    return p.mul(p.mul(x, p.floating(DType::f32, 0.5)), p.add(e, p.floating(DType::f32, 1)));
  });
}

Program elementwise(Opcode op, DType type) {
  return map("elementwise", 1, type,
             [op](Builder& p, Arrays in, Register i) { return p.unary(op, p.load(in[0], i)); });
}

Program sum() {
  Builder p("sum");
  const auto in = p.array("in", DType::f32, Access::read);
  const auto out = p.array("out", DType::f32, Access::write);
  const auto n = p.scalar("n", DType::u32);
  const Register total = p.variable(DType::f32);
  p.assign(total, p.floating(DType::f32, 0));
  p.for_(p.id(Opcode::thread_id), p.value(n), p.id(Opcode::block_size),
         [&](Register i) { p.assign(total, p.add(total, p.load(in, i))); });
  const Register all = p.group(Opcode::group_add, total);
  p.if_(p.compare(Opcode::eq, p.id(Opcode::thread_id), p.integer(DType::u32, 0)),
        [&] { p.store(out, p.integer(DType::u32, 0), all); });
  return *p.finish();
}

Program row_softmax() {
  Builder p("row_softmax");
  const auto in = p.array("in", DType::f32, Access::read);
  const auto out = p.array("out", DType::f32, Access::read_write);
  const auto columns = p.scalar("columns", DType::u32);
  const Register n = p.value(columns);
  const Register t = p.id(Opcode::thread_id);
  const Register step = p.id(Opcode::block_size);
  const Register row = p.mul(p.id(Opcode::block_id), n);
  const Register most = p.variable(DType::f32);
  p.assign(most, p.floating(DType::f32, -3e38));
  p.for_(t, n, step, [&](Register c) {
    p.assign(most, p.binary(Opcode::max, most, p.load(in, p.add(row, c))));
  });
  const Register highest = p.group(Opcode::group_max, most);
  const Register sum = p.variable(DType::f32);
  p.assign(sum, p.floating(DType::f32, 0));
  p.for_(t, n, step, [&](Register c) {
    const Register e = p.unary(Opcode::exp, p.sub(p.load(in, p.add(row, c)), highest));
    p.store(out, p.add(row, c), e);
    p.assign(sum, p.add(sum, e));
  });
  const Register total = p.group(Opcode::group_add, sum);
  const Register scale = p.div(p.floating(DType::f32, 1), total);
  p.for_(t, n, step, [&](Register c) {
    p.store(out, p.add(row, c), p.mul(p.load(out, p.add(row, c)), scale));
  });
  return *p.finish();
}

Program matmul() {
  Builder p("matmul");
  const auto a = p.array("a", DType::f32, Access::read);
  const auto b = p.array("b", DType::f32, Access::read);
  const auto c = p.array("c", DType::f32, Access::write);
  const auto m = p.scalar("m", DType::u32), n = p.scalar("n", DType::u32),
             k = p.scalar("k", DType::u32);
  const Register column = p.id(Opcode::global_id, 0), row = p.id(Opcode::global_id, 1);
  const Register inside =
      p.binary(Opcode::bit_and, p.lt(row, p.value(m)), p.lt(column, p.value(n)));
  p.if_(inside, [&] {
    const Register sum = p.variable(DType::f32);
    p.assign(sum, p.floating(DType::f32, 0));
    p.for_(p.integer(DType::u32, 0), p.value(k), p.integer(DType::u32, 1), [&](Register i) {
      const Register x = p.load(a, p.ternary(Opcode::mad, row, p.value(k), i));
      const Register y = p.load(b, p.ternary(Opcode::mad, i, p.value(n), column));
      p.assign(sum, p.ternary(Opcode::fma, x, y, sum));
    });
    p.store(c, p.ternary(Opcode::mad, row, p.value(n), column), sum);
  });
  return *p.finish();
}

Program convolution3x3() {
  Builder p("convolution3x3");
  const auto in = p.array("in", DType::f32, Access::read);
  const auto weight = p.array("weight", DType::f32, Access::read);
  const auto out = p.array("out", DType::f32, Access::write);
  const auto width = p.scalar("width", DType::i32), height = p.scalar("height", DType::i32);
  const Register x = p.id(Opcode::global_id, 0, DType::i32);
  const Register y = p.id(Opcode::global_id, 1, DType::i32);
  const Register w = p.value(width), h = p.value(height);
  const auto number = [&](int value) { return p.integer(DType::i32, value); };
  p.if_(p.binary(Opcode::bit_and, p.lt(x, w), p.lt(y, h)), [&] {
    const Register sum = p.variable(DType::f32);
    p.assign(sum, p.floating(DType::f32, 0));
    p.for_(number(0), number(3), number(1), [&](Register ky) {
      p.for_(number(0), number(3), number(1), [&](Register kx) {
        const Register sy = p.sub(p.add(y, ky), number(1));
        const Register sx = p.sub(p.add(x, kx), number(1));
        const Register ok_y =
            p.binary(Opcode::bit_and, p.compare(Opcode::ge, sy, number(0)), p.lt(sy, h));
        const Register ok_x =
            p.binary(Opcode::bit_and, p.compare(Opcode::ge, sx, number(0)), p.lt(sx, w));
        p.if_(p.binary(Opcode::bit_and, ok_y, ok_x), [&] {
          const Register value = p.load(in, p.ternary(Opcode::mad, sy, w, sx));
          const Register factor = p.load(weight, p.ternary(Opcode::mad, ky, number(3), kx));
          p.assign(sum, p.ternary(Opcode::fma, value, factor, sum));
        });
      });
    });
    p.store(out, p.ternary(Opcode::mad, y, w, x), sum);
  });
  return *p.finish();
}

}  // namespace hologram::bench
