#include "isa/testing/run_operation.h"

#include <algorithm>

#include "isa/builder.h"
#include "isa/interpreter.h"

namespace hologram::isa::testing {

Result<Program> elementwise(Opcode op, DType in, DType out) {
  Builder b("elementwise");
  const auto a = b.array("a", in, Access::read);
  const auto second = b.array("b", in, Access::read);
  const auto third = b.array("c", in, Access::read);
  const auto output = b.array("out", out, Access::write);
  const Register i = b.id(Opcode::global_id, 0, DType::u64);
  const Register inside = b.lt(i, b.length(output));
  b.if_(inside, [&] {
    const Register x = b.load(a, i);
    const Register y = b.load(second, i);
    const Register z = b.load(third, i);
    Register result;
    switch (info(op).form) {
      case Form::unary:
        result = b.unary(op, x);
        break;
      case Form::binary:
        result = b.binary(op, x, y);
        break;
      case Form::ternary:
        result = b.ternary(op, x, y, z);
        break;
      case Form::compare:
        result = b.compare(op, x, y);
        break;
      case Form::shift:
        result = b.shift(op, x, b.convert(y, DType::u32));
        break;
      default:
        result = b.convert(x, out);
        break;
    }
    b.store(output, i, result);
  });
  return b.finish();
}

Result<Bits> run_operation(Opcode op, DType in, DType out, const Bits& a, const Bits& b,
                           const Bits& c) {
  HOLOGRAM_TRY(const Program program, elementwise(op, in, out));
  std::vector<std::vector<std::byte>> arrays;
  for (const Bits* values : {&a, b.empty() ? &a : &b, c.empty() ? &a : &c}) {
    std::vector<std::byte>& bytes = arrays.emplace_back(a.size() * size_of(in));
    for (size_t i = 0; i < a.size(); ++i)
      std::memcpy(bytes.data() + i * size_of(in), &(*values)[i], size_of(in));
  }
  arrays.emplace_back(a.size() * size_of(out));
  std::vector<Argument> arguments;
  for (auto& bytes : arrays) arguments.push_back(Argument::array(bytes.data(), a.size()));
  const LaunchShape shape{.grid = {static_cast<uint32_t>(a.size() / 256 + 1), 1, 1},
                          .block = {256, 1, 1}};
  HOLOGRAM_CHECK(interpret(program, shape, arguments));
  Bits result(a.size());
  for (size_t i = 0; i < a.size(); ++i)
    std::memcpy(&result[i], arrays[3].data() + i * size_of(out), size_of(out));
  return result;
}

}  // namespace hologram::isa::testing
