#include "backends/access_bounds.h"

#include <algorithm>

namespace hologram::backends {
namespace {

using isa::Form;
using isa::Instruction;
using isa::Opcode;

bool opens_region(Form form) {
  return form == Form::if_begin || form == Form::for_begin || form == Form::loop_begin;
}

// The largest value of an integer type.
uint64_t largest(DType type) {
  const unsigned bits = bits_of(type) - (is_signed_integer(type) ? 1 : 0);
  return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

}  // namespace

AccessBounds::AccessBounds(const isa::Program& program) {
  std::vector<uint32_t> assignments(program.registers.size(), 0);
  for (const Instruction& instruction : program.body)
    if (instruction.dst.index < assignments.size()) ++assignments[instruction.dst.index];

  std::vector<uint32_t> node_of(program.registers.size(), kUnknown);
  const auto node = [&](isa::Register r) {
    return r.index < node_of.size() ? node_of[r.index] : kUnknown;
  };
  int depth = 0;
  for (const Instruction& instruction : program.body) {
    const Form form = info(instruction.op).form;
    if (instruction.op == Opcode::return_) break;  // what follows need not be reached by all
    if (opens_region(form)) ++depth;
    if (form == Form::end) --depth;
    if (depth != 0 || form == Form::end) continue;

    if (form == Form::load || form == Form::store || form == Form::atomic ||
        form == Form::atomic_cas) {
      if (!is_shared_access(instruction.op) && node(instruction.a) != kUnknown)
        accesses_.push_back({instruction.symbol, node(instruction.a)});
      continue;
    }
    if (!instruction.dst.valid() || assignments[instruction.dst.index] != 1 ||
        !is_integer(instruction.type) || nodes_.size() == kMaxNodes)
      continue;
    Node made{instruction.op, instruction.type, instruction.aux};
    switch (instruction.op) {
      case Opcode::imm:
        made.immediate = instruction.immediate;
        break;
      case Opcode::param:
        made.symbol = instruction.symbol;
        break;
      case Opcode::thread_id:
      case Opcode::block_id:
      case Opcode::block_size:
      case Opcode::grid_size:
      case Opcode::global_id:
        break;
      case Opcode::mov:
      case Opcode::convert:
        made.a = node(instruction.a);
        if (made.a == kUnknown) continue;
        break;
      case Opcode::mad:
        made.c = node(instruction.c);
        if (made.c == kUnknown) continue;
        [[fallthrough]];
      case Opcode::add:
      case Opcode::mul:
        made.a = node(instruction.a);
        made.b = node(instruction.b);
        if (made.a == kUnknown || made.b == kUnknown) continue;
        break;
      default:
        continue;
    }
    node_of[instruction.dst.index] = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back(made);
  }
}

bool AccessBounds::depends_on(uint32_t p) const {
  return std::ranges::any_of(
      nodes_, [p](const Node& node) { return node.op == Opcode::param && node.symbol == p; });
}

void AccessBounds::require(const isa::LaunchShape& shape, const uint64_t* words,
                           uint64_t* lengths_needed) const {
  if (accesses_.empty()) return;
  for (uint32_t extent : shape.grid)
    if (extent == 0) return;
  // The value each node has in the last thread, which is its largest. A value that does not fit its
  // type wraps: then nothing is known of it.
  uint64_t value[kMaxNodes];
  bool known[kMaxNodes];
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const uint64_t block = shape.block[node.axis], grid = shape.grid[node.axis];
    uint64_t result = 0;
    bool good = true;
    switch (node.op) {
      case Opcode::imm:
        result = node.immediate;
        break;
      case Opcode::param:
        result = words[node.symbol];
        break;
      case Opcode::thread_id:
        result = block - 1;
        break;
      case Opcode::block_id:
        result = grid - 1;
        break;
      case Opcode::block_size:
        result = block;
        break;
      case Opcode::grid_size:
        result = grid;
        break;
      case Opcode::global_id:
        result = grid * block - 1;
        break;
      case Opcode::mov:
      case Opcode::convert:
        good = known[node.a];
        result = good ? value[node.a] : 0;
        break;
      default: {
        good = known[node.a] && known[node.b] && (node.c == kUnknown || known[node.c]);
        if (!good) break;
        const bool overflow = node.op == Opcode::add
                                  ? __builtin_add_overflow(value[node.a], value[node.b], &result)
                                  : __builtin_mul_overflow(value[node.a], value[node.b], &result);
        good = !overflow &&
               (node.c == kUnknown || !__builtin_add_overflow(result, value[node.c], &result));
      }
    }
    // A negative constant or scalar is above `largest` here, since its bits are zero-extended.
    known[i] = good && result <= largest(node.type);
    value[i] = result;
  }
  for (const Access& access : accesses_)
    if (known[access.node] && value[access.node] != ~uint64_t{0})
      lengths_needed[access.parameter] =
          std::max(lengths_needed[access.parameter], value[access.node] + 1);
}

}  // namespace hologram::backends
