#include "codegen/vector_width.h"

#include <algorithm>
#include <array>

#include "isa/fields.h"

namespace hologram::codegen {
namespace {

using isa::Form;
using isa::Instruction;
using isa::Opcode;

// 16-bit floats compute in f32.
unsigned computing_bits(DType type) {
  return is_float(type) ? std::max(bits_of(type), 32u) : bits_of(type);
}

bool has_loop(const Kernel& kernel) {
  return std::ranges::any_of(kernel.program.body, [](const Instruction& i) {
    return i.op == Opcode::for_begin || i.op == Opcode::loop_begin;
  });
}

// The element size that most of the vectors have.
unsigned usual_bits(const Kernel& kernel, const LaneShapes& shapes) {
  std::array<unsigned, 65> count{};
  for (uint32_t index = 0; index < kernel.program.body.size(); ++index) {
    const Instruction& i = kernel.program.body[index];
    const Form form = isa::info(i.op).form;
    if (kernel.tree.region_of[index] == kNoRegion || form == Form::compare) continue;
    if (form == Form::store) ++count[computing_bits(i.type)];
    if (isa::uses(i, isa::kFieldDst) && shapes.registers[i.dst.index].is_varying())
      ++count[computing_bits(kernel.program.registers[i.dst.index])];
  }
  unsigned best = 64;
  for (unsigned bits : {64, 32, 16, 8})
    if (count[bits] > count[best]) best = bits;
  return count[best] == 0 ? 32 : best;
}

// About how many vectors are live at once.
unsigned pressure(const Kernel& kernel, const LaneShapes& shapes) {
  const std::vector<Instruction>& body = kernel.program.body;
  std::vector<uint32_t> last(kernel.program.registers.size(), 0);
  std::vector<bool> seen(kernel.program.registers.size(), false);
  for (uint32_t i = 0; i < body.size(); ++i) {
    for (const isa::Operand& o : isa::operands_of(body[i])) last[o.reg.index] = i;
    if (isa::uses(body[i], isa::kFieldDst)) last[body[i].dst.index] = i;
  }
  std::vector<uint32_t> ending(body.size(), 0);
  unsigned live = 0, most = 0;
  for (uint32_t i = 0; i < body.size(); ++i) {
    if (isa::uses(body[i], isa::kFieldDst)) {
      const uint32_t r = body[i].dst.index;
      // A result that is moved at once into a variable takes the variable's place.
      const bool moved = last[r] == i + 1 && body[i + 1].op == Opcode::mov;
      if (!seen[r] && !moved && shapes.registers[r].is_varying()) ++live, ++ending[last[r]];
      seen[r] = true;
    }
    most = std::max(most, live);
    live -= ending[i];
  }
  return most + (has_math(kernel) ? 8 : 0);
}

// Lanes that go separate ways cost masks; more of them at once only costs more.
bool goes_separate_ways(const Kernel& kernel, const LaneShapes& shapes) {
  for (uint32_t r = 0; r < kernel.tree.regions.size(); ++r) {
    const Region& region = kernel.tree.regions[r];
    if (shapes.divergent[r] && (region.depth > 2 || region.loop != kNoRegion)) return true;
  }
  for (const Instruction& i : kernel.program.body)
    if (isa::is_atomic(i.op)) return true;
  return false;
}

}  // namespace

bool is_math(Opcode op) {
  return (op >= Opcode::exp && op <= Opcode::log10) || (op >= Opcode::sin && op <= Opcode::pow);
}

bool has_math(const Kernel& kernel) {
  return std::ranges::any_of(kernel.program.body,
                             [](const Instruction& i) { return is_math(i.op); });
}

unsigned native_lanes(const Kernel& kernel, const LaneShapes& shapes) {
  return kernel.target.vector_bits() / usual_bits(kernel, shapes);
}

unsigned whole_block_of(const isa::Program& program, const Target& target) {
  // Bits of what one register of the program is in all threads: half of the largest registers.
  constexpr uint64_t kMostBits = 4096;
  const std::vector<const Instruction*> constants = find_constants(program);
  int64_t step = 0;
  bool reduces = false;
  unsigned bits = 32;
  for (const Instruction& i : program.body) {
    if (i.op == Opcode::barrier || i.op == Opcode::return_) return 0;
    // Lanes that sit out a turn cost more than they save where they need long code of their own.
    if (is_math(i.op) && !target.has_masks()) return 0;
    if (isa::info(i.op).form == Form::group) {
      reduces = true;
      bits = std::max(bits, computing_bits(i.type));
    }
    if (i.op != Opcode::for_begin) continue;
    const int64_t own = small_integer(constants[i.c.index]).value_or(0);
    if (own <= 1) continue;  // a loop of one thread
    if (step != 0 && step != own) return 0;
    step = own;
  }
  if (!reduces || step < 4 || (step & (step - 1)) != 0) return 0;
  return static_cast<uint64_t>(step) * bits <= kMostBits ? static_cast<unsigned>(step) : 0;
}

VectorWidth choose_width(const Kernel& kernel, const LaneShapes& shapes, bool one_row) {
  const Target& target = kernel.target;
  VectorWidth width;
  if (kernel.whole_block) return {kernel.whole_block, 1};
  const unsigned native = native_lanes(kernel, shapes);
  width.main = native;
  if (target.has_masks()) width.tail = native;
  unsigned unroll = 4;
  if (kernel.tree.synchronises) {
    // Blocks of the usual size have code of their own; the others need not be fast as well.
    if (target.has_masks() && whole_block_of(kernel.program, target) != 0) return {0, native};
    // Segments are many: where masks cost nothing, writing each once halves the time to compile.
    // Threads that only stride through memory together are worth it: they then read longer pieces.
    if (!target.has_masks()) return width;
    unroll = has_math(kernel) || !has_loop(kernel) ? 0 : 16;
  } else {
    if (!one_row || goes_separate_ways(kernel, shapes)) return width;
    // A loop inside the threads reuses what is uniform for all lanes: the more of them the better.
    if (has_loop(kernel) && target.has_masks()) unroll = 8;
  }
  while (unroll > 1 && unroll * pressure(kernel, shapes) > target.vector_registers()) unroll /= 2;
  width.main *= unroll;
  return width;
}

}  // namespace hologram::codegen
