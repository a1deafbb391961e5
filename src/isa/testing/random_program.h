// Random programs: verified, ending, without traps or races, with inputs. Drawn from a seed, the
// same on every machine. What any target makes of one must equal what the interpreter makes of it.
//
//   for (uint64_t seed = 0; seed < 5000; ++seed) {
//     const RandomCase c = draw_case(seed, FloatMode::exact);
//     auto expected = c.arrays, got = c.arrays;
//     interpret(c.program, c.shape, c.arguments(expected));
//     native(c.program, c.shape, c.arguments(got));
//     EXPECT_EQ(difference(c, expected, got, tolerance), "") << seed << '\n' <<
//     disassemble(c.program);
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "isa/launch.h"
#include "isa/program.h"
#include "support/function_ref.h"

namespace hologram::isa::testing {

enum class FloatMode {
  exact,  // only operations that are rounded exactly: every result is one number
  math,   // mathematical functions too, each result straight to an array of its own
};

// The contents of the arrays of a launch: one a parameter, empty for a scalar.
using Arrays = std::vector<std::vector<std::byte>>;

struct RandomCase {
  Program program;
  LaunchShape shape;
  Arrays arrays;                  // before the launch
  std::vector<uint64_t> scalars;  // one a parameter, 0 for an array
  // One a parameter: the function an array collects the results of, Opcode::mov for the others.
  std::vector<Opcode> functions;

  // What to launch with: scalars of the case, arrays in `arrays`, which must outlive the launch.
  std::vector<Argument> arguments(Arrays& arrays) const;
};

RandomCase draw_case(uint64_t seed, FloatMode mode = FloatMode::exact);

// Where two results of a case differ first, in words; empty when they agree. NaNs are equal to each
// other. Arrays of a function agree within `tolerance(function, type)` units in the last place; all
// others must have the same bits.
std::string difference(const RandomCase& c, const Arrays& expected, const Arrays& got,
                       FunctionRef<uint64_t(Opcode, DType)> tolerance);

}  // namespace hologram::isa::testing
