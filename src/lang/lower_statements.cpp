#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "lang/lower.h"
#include "lang/lower_impl.h"
#include "lang/validate.h"

namespace hologram::lang {

using ir::Expr;
using ir::Stmt;
using StmtKind = ir::Stmt::Kind;

// ---- what the text of a body says

bool contains_return(const Stmt& s) {
  if (s.kind == StmtKind::return_) return true;
  return std::ranges::any_of(s.body, contains_return) ||
         std::ranges::any_of(s.orelse, contains_return);
}

bool assigns(const std::vector<Stmt>& body, const std::string& name) {
  for (const Stmt& s : body) {
    if (s.kind == StmtKind::let && s.name == name) return true;
    if (s.kind == StmtKind::for_ && s.name == name) return true;
    if (s.kind == StmtKind::assign && s.target.kind == Expr::Kind::var && s.target.name == name)
      return true;
    if (assigns(s.body, name) || assigns(s.orelse, name)) return true;
  }
  return false;
}

namespace {

// `open`: the loop variables around. Names assigned in any other way, or twice inside each other,
// go to `others`.
void find_counters(const std::vector<Stmt>& body, std::set<std::string>& open,
                   std::set<std::string>& counters, std::set<std::string>& others) {
  for (const Stmt& s : body) {
    if (s.kind == StmtKind::let) others.insert(s.name);
    if (s.kind == StmtKind::assign && s.target.kind == Expr::Kind::var)
      others.insert(s.target.name);
    const bool is_for = s.kind == StmtKind::for_;
    bool added = false;
    if (is_for) {
      counters.insert(s.name);
      added = open.insert(s.name).second;
      if (!added) others.insert(s.name);
    }
    find_counters(s.body, open, counters, others);
    find_counters(s.orelse, open, counters, others);
    if (added) open.erase(s.name);
  }
}

void count_assignments(const std::vector<Stmt>& body, std::map<std::string, int>& counts) {
  for (const Stmt& s : body) {
    if (s.kind == StmtKind::let) counts[s.name] += s.values.empty() ? 2 : 1;
    if (s.kind == StmtKind::for_) counts[s.name] += 2;
    if (s.kind == StmtKind::assign && s.target.kind == Expr::Kind::var) counts[s.target.name] += 2;
    count_assignments(s.body, counts);
    count_assignments(s.orelse, counts);
  }
}

// Whether every return can be reached without a jump: none inside a loop, and behind every `if`
// that returns only one branch goes on.
bool returns_in_order(const std::vector<Stmt>& body, bool in_loop) {
  for (const Stmt& s : body) {
    if (s.kind == StmtKind::return_ && in_loop) return false;
    if (s.kind == StmtKind::for_ || s.kind == StmtKind::while_) {
      if (!returns_in_order(s.body, true)) return false;
    } else if (s.kind == StmtKind::if_) {
      if (!returns_in_order(s.body, in_loop) || !returns_in_order(s.orelse, in_loop)) return false;
      if (contains_return(s) && falls_through(s.body) && falls_through(s.orelse)) return false;
    }
  }
  return true;
}

uint64_t identity_bits(const std::string& op, DType type) {
  const unsigned bits = bits_of(type);
  const uint64_t all = ~uint64_t{0} >> (64 - bits);
  const bool largest = op == "min";
  if (is_unsigned_integer(type)) return largest ? all : 0;
  if (is_signed_integer(type)) return largest ? all >> 1 : uint64_t{1} << (bits - 1);
  return 0;
}

}  // namespace

std::set<std::string> plain_counters(const std::vector<Stmt>& body,
                                     const std::vector<ir::Param>& params) {
  std::set<std::string> open, counters, others;
  for (const ir::Param& p : params) others.insert(p.name);
  find_counters(body, open, counters, others);
  for (const std::string& name : others) counters.erase(name);
  return counters;
}

std::set<std::string> fixed_names(const std::vector<Stmt>& body) {
  std::map<std::string, int> counts;
  count_assignments(body, counts);
  std::set<std::string> names;
  for (const auto& [name, count] : counts)
    if (count == 1) names.insert(name);
  return names;
}

std::string shape_parameter(const std::string& array, uint32_t axis) {
  return fmt::format("{}_shape{}", array, axis);
}

// ---- the kernel

Lowering::Lowering(const ir::Kernel& kernel, const Uses* known)
    : kernel_(kernel), builder_(kernel.name), known_(known), uses_(kernel.params.size()) {}

void Lowering::run() {
  scopes_.emplace_back();
  std::vector<std::pair<std::string, isa::Builder::Scalar>> scalars;
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    const ir::Param& p = kernel_.params[i];
    if (!p.is_array()) {
      scalars.emplace_back(p.name, builder_.scalar(p.name, p.type));
      continue;
    }
    isa::Access access = isa::Access::read_write;
    if (known_ && !(*known_)[i].second) access = isa::Access::read;
    if (known_ && !(*known_)[i].first && (*known_)[i].second) access = isa::Access::write;
    ArrayRef a;
    a.global = builder_.array(p.name, p.type, access);
    a.type = p.type;
    a.parameter = i;
    scope().arrays[p.name] = std::move(a);
  }
  std::vector<std::pair<std::string, isa::Builder::Scalar>> extents;
  for (const ir::Param& p : kernel_.params)
    for (uint32_t axis = 0; p.rank > 1 && axis < p.rank; ++axis)
      extents.emplace_back(p.name, builder_.scalar(shape_parameter(p.name, axis), DType::u64));
  for (const auto& [name, symbol] : scalars) {
    Register value = builder_.value(symbol);
    if (assigns(kernel_.body, name)) {
      const Register copy = builder_.variable(symbol.type);
      builder_.assign(copy, value);
      value = copy;
    }
    scope().registers[name] = value;
  }
  for (const auto& [name, symbol] : extents)
    scope().arrays[name].extents.push_back(builder_.value(symbol));
  scope().counters = plain_counters(kernel_.body, kernel_.params);
  scope().fixed = fixed_names(kernel_.body);
  block(kernel_.body);
}

void Lowering::mark(const Stmt& s) {
  if (s.line != 0) places_.push_back({builder_.next_instruction(), {s.line, s.column}});
}

Position Lowering::place_of(size_t instruction) const {
  Position at{0, 0};
  for (const auto& [first, position] : places_)
    if (first <= instruction) at = position;
  return at;
}

// ---- statements

void Lowering::block(const std::vector<Stmt>& list) {
  for (const Stmt& s : list) {
    statement(s);
    // What follows in this block can never run.
    if (s.kind == StmtKind::return_ || s.kind == StmtKind::break_ || s.kind == StmtKind::continue_)
      return;
  }
}

Register Lowering::variable(const std::string& name, DType type) {
  auto [found, added] = scope().registers.try_emplace(name);
  if (added) found->second = builder_.variable(type);
  return found->second;
}

void Lowering::statement(const Stmt& s) {
  mark(s);
  switch (s.kind) {
    case StmtKind::let: {
      if (s.values.empty()) {
        variable(s.name, s.type);
        return;
      }
      const Register value = expression(s.values[0]);
      // A name that never changes is its value, unless that is another's variable.
      if (scope().fixed.contains(s.name) && s.values[0].kind != Expr::Kind::var) {
        scope().registers[s.name] = value;
        return;
      }
      return builder_.assign(variable(s.name, s.type), value);
    }
    case StmtKind::shared: {
      uint32_t count = 1;
      for (uint32_t n : s.extents) count *= n;
      ArrayRef a;
      a.is_shared = true;
      a.local = builder_.shared(s.name, s.type, count);
      a.type = s.type;
      a.sizes = s.extents;
      scope().arrays[s.name] = std::move(a);
      return;
    }
    case StmtKind::assign:
      return assign(s);
    case StmtKind::if_:
      builder_.begin_if(expression(s.values[0]));
      block(s.body);
      if (!s.orelse.empty()) {
        builder_.begin_else();
        block(s.orelse);
      }
      return builder_.end();
    case StmtKind::for_:
      return for_loop(s);
    case StmtKind::while_:
      return while_loop(s);
    case StmtKind::break_:
      return builder_.break_();
    case StmtKind::continue_:
      return builder_.continue_();
    case StmtKind::return_:
      return return_(s);
    case StmtKind::expression:
      if (find_function(s.values[0].name))
        call_helper(s.values[0]);
      else
        expression(s.values[0]);
      return;
    case StmtKind::barrier:
      return builder_.barrier();
    case StmtKind::fence:
      return builder_.fence();
    case StmtKind::parallel_map_unary:
    case StmtKind::parallel_map_binary:
      return parallel_map(s);
    case StmtKind::parallel_reduce:
      return parallel_reduce(s);
  }
}

void Lowering::assign(const Stmt& s) {
  const Register value = expression(s.values[0]);
  if (s.target.kind == Expr::Kind::var)
    return builder_.assign(scope().registers.at(s.target.name), value);
  const ArrayRef& a = array(s.target.name);
  store(a, offset(a, s.target.args.data(), s.target.args.size()), value);
}

void Lowering::for_loop(const Stmt& s) {
  const Register start = expression(s.values[0]);
  const Register stop = expression(s.values[1]);
  const Register step = expression(s.values[2]);
  const bool plain = scope().counters.contains(s.name);
  std::optional<Register> own;
  if (!plain) own = variable(s.name, s.type);
  const Register counter = builder_.begin_for(start, stop, step);
  if (plain)
    scope().registers[s.name] = counter;
  else  // Python's loop goes on from its own count, whatever the body does to the variable
    builder_.assign(*own, counter);
  ++scope().loops;
  block(s.body);
  --scope().loops;
  builder_.end();
  after_loop(s);
}

void Lowering::while_loop(const Stmt& s) {
  const Expr& condition = s.values[0];
  builder_.begin_loop();
  if (condition.kind != Expr::Kind::literal || condition.integer == 0) {
    builder_.begin_if(builder_.unary(Opcode::bit_not, expression(condition)));
    builder_.break_();
    builder_.end();
  }
  ++scope().loops;
  block(s.body);
  --scope().loops;
  builder_.end();
  after_loop(s);
}

void Lowering::after_loop(const Stmt& s) {
  if (!scope().returned || !contains_return(s)) return;
  builder_.begin_if(*scope().returned);
  builder_.break_();
  builder_.end();
}

void Lowering::return_(const Stmt& s) {
  if (!scope().is_helper) return builder_.return_();
  if (!s.values.empty()) builder_.assign(*scope().result, expression(s.values[0]));
  if (!scope().returned) return;  // in order: nothing follows
  if (scope().loops > 0) builder_.assign(*scope().returned, builder_.boolean(true));
  builder_.break_();
}

void Lowering::tail(std::vector<const Stmt*> list) {
  for (size_t i = 0; i < list.size(); ++i) {
    const Stmt& s = *list[i];
    if (s.kind != StmtKind::if_ || !contains_return(s)) {
      statement(s);
      if (s.kind == StmtKind::return_) return;
      continue;
    }
    mark(s);
    const std::vector<const Stmt*> rest(list.begin() + static_cast<ptrdiff_t>(i) + 1, list.end());
    const auto branch = [&](const std::vector<Stmt>& body) {
      std::vector<const Stmt*> all;
      for (const Stmt& inner : body) all.push_back(&inner);
      if (falls_through(body)) all.insert(all.end(), rest.begin(), rest.end());
      tail(std::move(all));
    };
    builder_.begin_if(expression(s.values[0]));
    branch(s.body);
    builder_.begin_else();
    branch(s.orelse);
    return builder_.end();
  }
}

std::optional<Register> Lowering::helper(const ir::Function& f,
                                         const std::vector<Register>& scalars,
                                         const std::vector<const ArrayRef*>& arrays) {
  Scope inner;
  inner.is_helper = true;
  size_t next_scalar = 0, next_array = 0;
  for (const ir::Param& p : f.params) {
    if (p.is_array()) {
      inner.arrays[p.name] = *arrays[next_array++];
      continue;
    }
    Register value = scalars[next_scalar++];
    if (assigns(f.body, p.name)) {
      const Register copy = builder_.variable(p.type);
      builder_.assign(copy, value);
      value = copy;
    }
    inner.registers[p.name] = value;
  }
  inner.counters = plain_counters(f.body, f.params);
  inner.fixed = fixed_names(f.body);
  // A body that is one return needs no variable for the result.
  if (f.result && f.body.size() == 1 && f.body[0].kind == StmtKind::return_) {
    scopes_.push_back(std::move(inner));
    mark(f.body[0]);
    const Register value = expression(f.body[0].values[0]);
    scopes_.pop_back();
    return value;
  }
  if (f.result) inner.result = builder_.variable(*f.result);
  const std::optional<Register> result = inner.result;
  const bool in_order = returns_in_order(f.body, false);
  if (!in_order) {
    inner.returned = builder_.variable(DType::boolean);
    builder_.assign(*inner.returned, builder_.boolean(false));
    if (result) builder_.assign(*result, zero(*f.result));
  }
  scopes_.push_back(std::move(inner));
  if (in_order) {
    std::vector<const Stmt*> list;
    for (const Stmt& s : f.body) list.push_back(&s);
    tail(std::move(list));
  } else {
    // A loop that runs once: a return is a break out of it.
    builder_.begin_loop();
    block(f.body);
    builder_.break_();
    builder_.end();
  }
  scopes_.pop_back();
  return result;
}

// ---- the grid together

Register Lowering::count_u64(const Expr& e) {
  Register n = expression(e);
  const DType type = builder_.type_of(n);
  if (is_signed_integer(type)) n = builder_.binary(Opcode::max, n, zero(type));
  return builder_.convert(n, DType::u64);
}

void Lowering::parallel_map(const Stmt& s) {
  const Register n = count_u64(s.values[0]);
  const Register first = builder_.id(Opcode::global_id, 0, DType::u64);
  const Register threads = builder_.mul(builder_.id(Opcode::grid_size, 0, DType::u64),
                                        builder_.id(Opcode::block_size, 0, DType::u64));
  const auto element = [&](Register i) {
    std::vector<Register> args;
    for (size_t k = 0; k + 1 < s.arrays.size(); ++k) args.push_back(load(array(s.arrays[k]), i));
    const Register value = apply(s.function, args);
    store(array(s.arrays.back()), i, value);
  };
  // With a thread an element, which is the default launch, the loop behind runs no time: the
  // common case stays a plain body that becomes vector lanes.
  builder_.begin_if(builder_.lt(first, n));
  element(first);
  builder_.end();
  builder_.begin_if(builder_.lt(threads, n));
  element(builder_.begin_for(builder_.add(first, threads), n, threads));
  builder_.end();
  builder_.end();
}

void Lowering::parallel_reduce(const Stmt& s) {
  const DType type = array(s.arrays[0]).type;
  const std::string& op = s.function;
  const Register n = count_u64(s.values[0]);
  const Register own = builder_.id(Opcode::thread_id, 0, DType::u64);
  const Register width = builder_.id(Opcode::block_size, 0, DType::u64);
  const Register total = builder_.variable(type);
  const bool sums = op == "add" || op == "mul";
  if (sums)
    builder_.assign(total, constant(type, op == "mul"));
  else if (is_float(type))
    builder_.assign(total, builder_.floating(type, op == "min" ? INFINITY : -INFINITY));
  else
    builder_.assign(total, builder_.bits(type, identity_bits(op, type)));
  const Opcode step = op == "add"   ? Opcode::add
                      : op == "mul" ? Opcode::mul
                      : op == "min" ? Opcode::min
                                    : Opcode::max;
  const Register i = builder_.begin_for(own, n, width);
  builder_.assign(total, builder_.binary(step, total, load(array(s.arrays[0]), i)));
  builder_.end();
  const Opcode group = op == "add"   ? Opcode::group_add
                       : op == "mul" ? Opcode::group_mul
                       : op == "min" ? Opcode::group_min
                                     : Opcode::group_max;
  const Register result = builder_.group(group, total);
  // Every block has the whole result; one thread of the first writes it.
  const Register zero64 = zero(DType::u64);
  const Register first =
      builder_.compare(Opcode::eq, builder_.id(Opcode::global_id, 0, DType::u64), zero64);
  builder_.begin_if(first);
  store(array(s.arrays[1]), zero64, result);
  builder_.end();
}

Result<isa::Program> lower(const ir::Kernel& kernel, Position* where) {
  Lowering draft(kernel, nullptr);
  draft.run();
  Lowering final(kernel, &draft.uses());
  final.run();
  auto program = final.finish();
  if (!program && where) {
    // "kernel 'x': instruction 12 (barrier): ...": the verifier knows instructions, we know lines.
    const std::string& text = program.error().message();
    constexpr std::string_view kWord = "instruction ";
    if (const size_t at = text.find(kWord); at != std::string::npos) {
      size_t number = 0;
      std::from_chars(text.data() + at + kWord.size(), text.data() + text.size(), number);
      *where = final.place_of(number);
    }
  }
  return program;
}

Result<std::optional<isa::Program>> lower_launch(const ir::Kernel& kernel) {
  if (!kernel.launch || kernel.launch->threads.empty()) return std::nullopt;
  ir::Kernel sizes;
  sizes.name = kernel.name + "_launch";
  sizes.params = kernel.params;
  sizes.params.push_back({"launch__", DType::u64, 1});
  for (size_t i = 0; i < 6; ++i) {
    Stmt store{StmtKind::assign};
    Expr at{Expr::Kind::literal, DType::u32};
    at.integer = i;
    Expr count{Expr::Kind::literal, DType::u64};
    count.integer = i < 3 ? 1 : kernel.launch->block[i - 3];
    if (i < kernel.launch->threads.size()) count = kernel.launch->threads[i];
    if (is_signed_integer(*count.type)) {  // a negative count is none
      Expr none{Expr::Kind::literal, *count.type};
      Expr most{Expr::Kind::call, *count.type, "max"};
      most.args = {std::move(count), std::move(none)};
      count = std::move(most);
    }
    if (*count.type != DType::u64) {
      Expr cast{Expr::Kind::cast, DType::u64};
      cast.args.push_back(std::move(count));
      count = std::move(cast);
    }
    store.target = {Expr::Kind::index, DType::u64, "launch__"};
    store.target.args.push_back(std::move(at));
    store.values.push_back(std::move(count));
    sizes.body.push_back(std::move(store));
  }
  HOLOGRAM_CHECK(validate(sizes));
  HOLOGRAM_TRY(isa::Program program, lower(sizes));
  return program;
}

}  // namespace hologram::lang
