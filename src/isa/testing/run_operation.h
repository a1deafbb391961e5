// Runs one operation on many values: what tests of an operation's meaning are made of.
#pragma once

#include <cstring>
#include <vector>

#include "isa/builder.h"
#include "isa/interpreter.h"

namespace hologram::isa::testing {

// The program `out[i] = write(a[i], b[i], c[i])`, verified. Unused arrays may be there.
template <typename Write>
Result<Program> elementwise(DType in, DType out, Write&& write) {
  Builder b("elementwise");
  Builder::Array inputs[3];
  const char* const names[] = {"a", "b", "c"};
  for (int k = 0; k < 3; ++k) inputs[k] = b.array(names[k], in, Access::read);
  const auto output = b.array("out", out, Access::write);
  const Register i = b.id(Opcode::global_id, 0, DType::u64);
  const Register inside = b.lt(i, b.length(output));
  b.if_(inside, [&] {
    const Register x = b.load(inputs[0], i);
    const Register y = b.load(inputs[1], i);
    const Register z = b.load(inputs[2], i);
    b.store(output, i, write(b, x, y, z));
  });
  return b.finish();
}

// Runs such a program by the interpreter. Missing operands repeat the first.
template <typename Out, typename In>
Result<std::vector<Out>> run_elementwise(const Program& program, const std::vector<In>& a,
                                         const std::vector<In>& b = {},
                                         const std::vector<In>& c = {}) {
  std::vector<std::vector<std::byte>> bytes;
  for (const auto* values : {&a, b.empty() ? &a : &b, c.empty() ? &a : &c}) {
    std::vector<std::byte>& to = bytes.emplace_back(a.size() * sizeof(In));
    for (size_t i = 0; i < a.size(); ++i) {
      const In value = (*values)[i];
      std::memcpy(to.data() + i * sizeof(In), &value, sizeof(In));
    }
  }
  std::vector<std::byte> out(a.size() * sizeof(Out));
  std::vector<Argument> arguments;
  for (auto& values : bytes) arguments.push_back(Argument::array(values.data(), a.size()));
  arguments.push_back(Argument::array(out.data(), a.size()));
  const LaunchShape shape{.grid = {static_cast<uint32_t>(a.size() / 256 + 1), 1, 1},
                          .block = {256, 1, 1}};
  HOLOGRAM_CHECK(interpret(program, shape, arguments));
  std::vector<Out> result(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    Out value;
    std::memcpy(&value, out.data() + i * sizeof(Out), sizeof(Out));
    result[i] = value;
  }
  return result;
}

}  // namespace hologram::isa::testing
