#include "backends/access_bounds.h"

#include <algorithm>
#include <optional>

namespace hologram::backends {

using isa::Form;
using isa::Instruction;
using isa::Opcode;

namespace {

bool opens_region(Form form) {
  return form == Form::if_begin || form == Form::for_begin || form == Form::loop_begin;
}

bool is_thread_dependent(Opcode op) {
  return op == Opcode::thread_id || op == Opcode::block_id || op == Opcode::global_id;
}

// The largest value of an integer type.
uint64_t largest(DType type) {
  const unsigned bits = bits_of(type) - (is_signed_integer(type) ? 1 : 0);
  return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

}  // namespace

// Walks the body once, keeping what is known of registers and of the regions it is in.
class AccessBounds::Reader {
 public:
  Reader(AccessBounds& bounds, const isa::Program& program)
      : bounds_(bounds),
        program_(program),
        assignments_(program.registers.size(), 0),
        node_of_(program.registers.size(), kUnknown),
        tests_(program.registers.size()) {
    for (const Instruction& instruction : program.body)
      if (instruction.dst.index < assignments_.size()) ++assignments_[instruction.dst.index];
  }

  void run() {
    regions_.emplace_back();
    for (size_t at = 0; at < program_.body.size(); ++at) {
      const Instruction& instruction = program_.body[at];
      const Form form = info(instruction.op).form;
      if (form == Form::if_begin && returns_at_once(at)) {
        // What follows is reached where the test fails.
        if (const Tests* tests = tests_of(instruction.a); tests && tests->fails)
          regions_.back().guards.push_back(*tests->fails);
        else
          regions_.back().opaque = true;
        at += 2;
      } else if (instruction.op == Opcode::return_) {
        return;  // what follows need not be reached by all
      } else if (opens_region(form)) {
        open(at);
      } else if (form == Form::if_else) {
        regions_.back().opaque = true;
      } else if (form == Form::end) {
        regions_.pop_back();
      } else {
        read(instruction);
      }
    }
  }

 private:
  // What holds where a bool is true, or where it is false.
  struct Tests {
    std::vector<Guard> holds;
    std::optional<Guard> fails;
  };
  struct Region {
    std::vector<Guard> guards;
    std::optional<uint32_t> loop;
    bool opaque = false;
  };

  uint32_t node(isa::Register r) const {
    return r.index < node_of_.size() ? node_of_[r.index] : kUnknown;
  }
  const Tests* tests_of(isa::Register r) const {
    return r.index < tests_.size() && tests_[r.index] ? &*tests_[r.index] : nullptr;
  }
  const Node& at(uint32_t index) const { return bounds_.nodes_[index]; }
  bool uniform(uint32_t index) const { return index != kUnknown && at(index).uniform; }

  bool returns_at_once(size_t begin) const {
    const auto& body = program_.body;
    return begin + 2 < body.size() && body[begin + 1].op == Opcode::return_ &&
           info(body[begin + 2].op).form == Form::end;
  }

  void open(size_t begin) {
    const Instruction& instruction = program_.body[begin];
    Region region;
    if (info(instruction.op).form == Form::if_begin) {
      const Tests* tests = tests_of(instruction.a);
      region.opaque = !tests || tests->holds.empty();
      if (tests) region.guards = tests->holds;
    } else {
      region.opaque = true;
      if (info(instruction.op).form == Form::for_begin && !leaves_early(begin)) {
        const Node counter{.op = instruction.op,
                           .type = instruction.type,
                           .a = node(instruction.a),
                           .b = node(instruction.b),
                           .c = node(instruction.c)};
        if (uniform(counter.a) && uniform(counter.b) && uniform(counter.c) &&
            add(instruction, counter)) {
          region.opaque = false;
          region.loop = node(instruction.dst);
        }
      }
    }
    regions_.push_back(std::move(region));
  }

  bool leaves_early(size_t begin) const {
    int depth = 0;
    for (size_t i = begin; i < program_.body.size(); ++i) {
      const Form form = info(program_.body[i].op).form;
      if (form == Form::jump) return true;
      if (opens_region(form)) ++depth;
      if (form == Form::end && --depth == 0) return false;
    }
    return true;
  }

  // Registers a node for the result of an instruction; false where nothing can be said of it.
  bool add(const Instruction& instruction, const Node& made) {
    if (!instruction.dst.valid() || assignments_[instruction.dst.index] != 1 ||
        !is_integer(instruction.type) || bounds_.nodes_.size() == kMaxNodes)
      return false;
    node_of_[instruction.dst.index] = static_cast<uint32_t>(bounds_.nodes_.size());
    bounds_.nodes_.push_back(made);
    return true;
  }

  void read(const Instruction& instruction) {
    const Form form = info(instruction.op).form;
    if (form == Form::load || form == Form::store || form == Form::atomic ||
        form == Form::atomic_cas) {
      if (!is_shared_access(instruction.op) && node(instruction.a) != kUnknown)
        access({instruction.symbol, node(instruction.a)});
      return;
    }
    if (form == Form::compare || instruction.op == Opcode::bit_and) read_test(instruction);
    Node made{.op = instruction.op, .type = instruction.type, .axis = instruction.aux};
    switch (instruction.op) {
      case Opcode::imm:
        made.immediate = instruction.immediate;
        made.uniform = true;
        break;
      case Opcode::param:
        made.symbol = instruction.symbol;
        made.uniform = true;
        break;
      case Opcode::block_size:
      case Opcode::grid_size:
        made.uniform = true;
        break;
      case Opcode::thread_id:
      case Opcode::block_id:
      case Opcode::global_id:
        break;
      case Opcode::mov:
      case Opcode::convert:
        made.a = node(instruction.a);
        if (made.a == kUnknown) return;
        made.uniform = uniform(made.a);
        break;
      case Opcode::mad:
        made.c = node(instruction.c);
        if (made.c == kUnknown) return;
        [[fallthrough]];
      case Opcode::add:
      case Opcode::mul:
        made.a = node(instruction.a);
        made.b = node(instruction.b);
        if (made.a == kUnknown || made.b == kUnknown) return;
        made.uniform =
            uniform(made.a) && uniform(made.b) && (made.c == kUnknown || uniform(made.c));
        break;
      default:
        return;
    }
    add(instruction, made);
  }

  // The id that a node is a copy of; kUnknown where it is none.
  uint32_t id_behind(uint32_t index) const {
    while (index != kUnknown && (at(index).op == Opcode::mov || at(index).op == Opcode::convert))
      index = at(index).a;
    return index != kUnknown && is_thread_dependent(at(index).op) ? index : kUnknown;
  }

  void read_test(const Instruction& instruction) {
    if (!instruction.dst.valid() || assignments_[instruction.dst.index] != 1) return;
    Tests tests;
    if (instruction.op == Opcode::bit_and) {
      const Tests *a = tests_of(instruction.a), *b = tests_of(instruction.b);
      if (!a || !b || a->holds.empty() || b->holds.empty()) return;
      tests.holds = a->holds;
      tests.holds.insert(tests.holds.end(), b->holds.begin(), b->holds.end());
    } else {
      if (!is_integer(instruction.type)) return;
      Opcode op = instruction.op;
      uint32_t left = node(instruction.a), right = node(instruction.b);
      if (uniform(left)) {  // n > i is i < n
        std::swap(left, right);
        op = op == Opcode::lt   ? Opcode::gt
             : op == Opcode::le ? Opcode::ge
             : op == Opcode::gt ? Opcode::lt
             : op == Opcode::ge ? Opcode::le
                                : op;
      }
      const uint32_t id = id_behind(left);
      if (id == kUnknown || !uniform(right)) return;
      if (op == Opcode::lt) tests.holds = {{id, right, false}};
      if (op == Opcode::le) tests.holds = {{id, right, true}};
      if (op == Opcode::ge) tests.fails = Guard{id, right, false};
      if (op == Opcode::gt) tests.fails = Guard{id, right, true};
    }
    tests_[instruction.dst.index] = std::move(tests);
  }

  // The nodes below `index`, itself last.
  void collect(uint32_t index, std::vector<uint32_t>& nodes) const {
    if (index == kUnknown || std::ranges::find(nodes, index) != nodes.end()) return;
    collect(at(index).a, nodes);
    collect(at(index).b, nodes);
    collect(at(index).c, nodes);
    nodes.push_back(index);
  }

  void access(const Access& access) {
    Context context;
    for (const Region& region : regions_) {
      if (region.opaque) return;
      for (const Guard& guard : region.guards)
        if (std::ranges::find(context.guards, guard) == context.guards.end())
          context.guards.push_back(guard);
      if (region.loop) context.loops.push_back(*region.loop);
    }
    for (const Guard& guard : context.guards) collect(guard.bound, context.nodes);
    for (uint32_t loop : context.loops) collect(loop, context.nodes);
    collect(access.node, context.nodes);
    // A tested id stands for a thread: another id of its axis is not free to be its largest.
    for (const Guard& guard : context.guards) {
      const Node& tested = at(guard.node);
      const auto other = [&](uint32_t i) {
        return is_thread_dependent(at(i).op) && at(i).axis == tested.axis && at(i).op != tested.op;
      };
      if (std::ranges::any_of(context.nodes, other)) return;
      for (const Guard& second : context.guards)
        if (other(second.node)) return;
    }
    for (Context& known : bounds_.contexts_)
      if (known.guards == context.guards && known.loops == context.loops) {
        for (uint32_t i : context.nodes)
          if (std::ranges::find(known.nodes, i) == known.nodes.end()) known.nodes.push_back(i);
        known.accesses.push_back(access);
        return;
      }
    context.accesses.push_back(access);
    bounds_.contexts_.push_back(std::move(context));
  }

  AccessBounds& bounds_;
  const isa::Program& program_;
  std::vector<uint32_t> assignments_, node_of_;
  std::vector<std::optional<Tests>> tests_;
  std::vector<Region> regions_;
};

AccessBounds::AccessBounds(const isa::Program& program) { Reader(*this, program).run(); }

bool AccessBounds::depends_on(uint32_t p) const {
  return std::ranges::any_of(contexts_, [&](const Context& context) {
    return std::ranges::any_of(context.nodes, [&](uint32_t i) {
      return nodes_[i].op == Opcode::param && nodes_[i].symbol == p;
    });
  });
}

// A value that does not fit its type wraps: then nothing is known of it.
struct AccessBounds::Values {
  uint64_t value[kMaxNodes];
  bool known[kMaxNodes];
};

bool AccessBounds::evaluate(const Context& context, const isa::LaunchShape& shape,
                            const uint64_t* words, Values& values) const {
  for (uint32_t i : context.nodes) {
    const Node& node = nodes_[i];
    const uint64_t block = shape.block[node.axis], grid = shape.grid[node.axis];
    const auto value = [&](uint32_t n) { return values.value[n]; };
    uint64_t result = 0;
    bool good = (node.a == kUnknown || values.known[node.a]) &&
                (node.b == kUnknown || values.known[node.b]) &&
                (node.c == kUnknown || values.known[node.c]);
    if (good) switch (node.op) {
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
          result = value(node.a);
          break;
        case Opcode::for_begin: {
          // The last turn; known bounds are not negative, and neither is the step.
          const uint64_t from = value(node.a), to = value(node.b), step = value(node.c);
          if (to <= from || step == 0) return false;
          result = from + (to - from - 1) / step * step;
          break;
        }
        case Opcode::add:
          good = !__builtin_add_overflow(value(node.a), value(node.b), &result);
          break;
        default:  // mul, mad
          good = !__builtin_mul_overflow(value(node.a), value(node.b), &result) &&
                 (node.c == kUnknown || !__builtin_add_overflow(result, value(node.c), &result));
      }
    if (is_thread_dependent(node.op))
      for (const Guard& guard : context.guards) {
        const Node& tested = nodes_[guard.node];
        if (tested.op != node.op || tested.axis != node.axis) continue;
        result = std::min(result, value(guard.bound) - (guard.inclusive ? 0 : 1));
      }
    // A negative constant or scalar is above `largest` here, since its bits are zero-extended.
    values.known[i] = good && result <= largest(node.type);
    values.value[i] = result;
    // A test against what is not known, or that no thread passes.
    for (const Guard& guard : context.guards)
      if (guard.bound == i && (!values.known[i] || (result == 0 && !guard.inclusive))) return false;
    if (node.op == Opcode::for_begin && !values.known[i]) return false;
  }
  return std::ranges::all_of(context.loops, [&](uint32_t loop) { return values.known[loop]; });
}

void AccessBounds::require(const isa::LaunchShape& shape, const uint64_t* words,
                           uint64_t* lengths_needed) const {
  if (contexts_.empty()) return;
  for (uint32_t extent : shape.grid)
    if (extent == 0) return;
  Values values;
  for (const Context& context : contexts_) {
    if (!evaluate(context, shape, words, values)) continue;
    for (const Access& access : context.accesses)
      if (values.known[access.node] && values.value[access.node] != ~uint64_t{0})
        lengths_needed[access.parameter] =
            std::max(lengths_needed[access.parameter], values.value[access.node] + 1);
  }
}

}  // namespace hologram::backends
