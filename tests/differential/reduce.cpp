#include "tests/differential/reduce.h"

#include "isa/fields.h"
#include "isa/verifier.h"

namespace hologram::codegen {
namespace {

using isa::Form;
using isa::Instruction;
using isa::Opcode;
using isa::Program;

bool opens(const Instruction& i) {
  const Form form = isa::info(i.op).form;
  return form == Form::if_begin || form == Form::for_begin || form == Form::loop_begin;
}

// One past the `end` of the region that instruction `first` opens.
size_t region_end(const Program& p, size_t first) {
  size_t depth = 0;
  for (size_t i = first; i < p.body.size(); ++i) {
    depth += opens(p.body[i]);
    if (p.body[i].op == Opcode::end && --depth == 0) return i + 1;
  }
  return p.body.size();
}

// Registers that addresses are computed from: changing those would make threads meet.
std::vector<bool> addressing(const Program& p) {
  std::vector<bool> result(p.registers.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instruction& i : p.body) {
      const bool is_access = isa::uses(i, isa::kFieldSymbol) && isa::uses(i, isa::kFieldA);
      const bool feeds = isa::uses(i, isa::kFieldDst) && result[i.dst.index] && !is_access;
      for (const isa::Operand& o : isa::operands_of(i)) {
        if (!feeds && !(is_access && o.field == isa::kFieldA)) continue;
        changed |= !result[o.reg.index];
        result[o.reg.index] = true;
      }
    }
  }
  return result;
}

// Only the registers that are left, in order.
Program renumbered(Program p) {
  std::vector<bool> used(p.registers.size(), false);
  for (const Instruction& i : p.body) {
    for (const isa::Operand& o : isa::operands_of(i)) used[o.reg.index] = true;
    if (isa::uses(i, isa::kFieldDst)) used[i.dst.index] = true;
  }
  std::vector<uint32_t> number(p.registers.size());
  std::vector<DType> types;
  for (size_t r = 0; r < used.size(); ++r) {
    number[r] = static_cast<uint32_t>(types.size());
    if (used[r]) types.push_back(p.registers[r]);
  }
  for (Instruction& i : p.body)
    for (isa::Register* r : {&i.dst, &i.a, &i.b, &i.c})
      if (r->valid()) r->index = number[r->index];
  p.registers = std::move(types);
  return p;
}

}  // namespace

Program reduce(Program program, FunctionRef<bool(const Program&)> fails) {
  const auto try_it = [&](Program candidate) {
    if (candidate == program || !isa::verify(candidate) || !fails(candidate)) return false;
    program = std::move(candidate);
    return true;
  };
  const std::vector<bool> kept = addressing(program);
  for (bool changed = true; changed;) {
    changed = false;
    // From the end: what is computed there needs what comes before it.
    for (size_t i = program.body.size(); i-- > 0;) {
      if (i >= program.body.size()) continue;
      const Instruction instruction = program.body[i];
      if (isa::uses(instruction, isa::kFieldDst) && kept[instruction.dst.index] &&
          !opens(instruction)) {
        Program without = program;
        without.body.erase(without.body.begin() + static_cast<std::ptrdiff_t>(i));
        changed |= try_it(std::move(without));
        continue;
      }
      Program candidate = program;
      if (opens(instruction)) {
        const auto end = static_cast<std::ptrdiff_t>(region_end(program, i));
        const auto first = static_cast<std::ptrdiff_t>(i);
        candidate.body.erase(candidate.body.begin() + first, candidate.body.begin() + end);
        // What the region assigned is zero instead.
        std::vector<Instruction> zeros;
        for (std::ptrdiff_t k = first; k < end; ++k) {
          const Instruction& inner = program.body[static_cast<size_t>(k)];
          if (!isa::uses(inner, isa::kFieldDst) || kept[inner.dst.index]) continue;
          zeros.push_back(
              {.op = Opcode::imm, .type = program.registers[inner.dst.index], .dst = inner.dst});
        }
        candidate.body.insert(candidate.body.begin() + first, zeros.begin(), zeros.end());
        if (try_it(std::move(candidate))) {
          changed = true;
          continue;
        }
        candidate = program;  // without its control flow
        candidate.body.erase(candidate.body.begin() + end - 1);
        candidate.body.erase(candidate.body.begin() + first);
        changed |= try_it(std::move(candidate));
        continue;
      }
      candidate.body.erase(candidate.body.begin() + static_cast<std::ptrdiff_t>(i));
      if (try_it(candidate)) {
        changed = true;
        continue;
      }
      if (!isa::uses(instruction, isa::kFieldDst) || instruction.op == Opcode::imm) continue;
      candidate = program;
      candidate.body[i] = {.op = Opcode::imm,
                           .type = program.registers[instruction.dst.index],
                           .dst = instruction.dst};
      if (try_it(candidate)) {
        changed = true;
        continue;
      }
      // An operand of the same type in its place.
      for (const isa::Operand& o : isa::operands_of(instruction)) {
        const DType type = program.registers[instruction.dst.index];
        if (program.registers[o.reg.index] != type || o.reg == instruction.dst ||
            instruction.op == Opcode::mov)
          continue;
        candidate = program;
        candidate.body[i] = {.op = Opcode::mov, .type = type, .dst = instruction.dst, .a = o.reg};
        if (try_it(candidate)) {
          changed = true;
          break;
        }
      }
    }
  }
  return renumbered(std::move(program));
}

}  // namespace hologram::codegen
