#include "isa/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "isa/fields.h"
#include "isa/uniformity.h"

namespace hologram::isa {
namespace {

using Finding = std::optional<Violation>;

template <typename... Args>
[[gnu::cold, gnu::noinline]] Violation violation(uint32_t instruction,
                                                 fmt::format_string<Args...> format,
                                                 Args&&... args) {
  return {instruction, fmt::format(format, std::forward<Args>(args)...)};
}

template <typename... Args>
[[gnu::cold, gnu::noinline]] Violation bad_declaration(fmt::format_string<Args...> format,
                                                       Args&&... args) {
  return {Violation::kWholeProgram, fmt::format(format, std::forward<Args>(args)...)};
}

// Type names even for numbers that are not types (a hand-made program).
std::string_view type_name(DType type) {
  return dtype_from_code(static_cast<uint8_t>(type)) ? name_of(type) : "not a type";
}

// ---- declarations

Finding check_name(std::string_view what, const std::string& name) {
  if (is_identifier(name)) return std::nullopt;
  return bad_declaration(
      "{} '{}': a name is 1 to {} letters, digits, '_' and '.', starting with a letter or '_'",
      what, name.substr(0, kMaxNameLength), kMaxNameLength);
}

// Whether no name is among those before it. Few are compared with each other: kernels have some
// ten.
class Names {
 public:
  bool add(std::string_view name) {
    const auto end = few_.begin() + count_;
    if (std::find(few_.begin(), end, name) != end) return false;
    if (count_ == few_.size()) return many_.insert(name).second;
    few_[count_++] = name;
    return true;
  }

 private:
  std::array<std::string_view, 16> few_;
  size_t count_ = 0;
  std::set<std::string_view> many_;
};

Finding check_declarations(const Program& program) {
  if (auto bad = check_name("kernel", program.name)) return bad;
  if (program.parameters.size() > kMaxParameters)
    return bad_declaration("{} parameters, at most {} are allowed", program.parameters.size(),
                           kMaxParameters);
  if (program.shared.size() > kMaxSharedArrays)
    return bad_declaration("{} shared arrays, at most {} are allowed", program.shared.size(),
                           kMaxSharedArrays);
  if (program.registers.size() > kMaxRegisters)
    return bad_declaration("{} registers, at most {} are allowed", program.registers.size(),
                           kMaxRegisters);
  if (program.body.size() > kMaxInstructions)
    return bad_declaration("{} instructions, at most {} are allowed", program.body.size(),
                           kMaxInstructions);

  Names names;
  for (const Parameter& p : program.parameters) {
    if (auto bad = check_name("parameter", p.name)) return bad;
    if (!names.add(p.name)) return bad_declaration("'{}' is declared twice", p.name);
    if (!is_compute(p.type))
      return bad_declaration("parameter '{}': {} is not a type kernels compute with", p.name,
                             type_name(p.type));
    const auto access = static_cast<uint8_t>(p.access);
    if (access < 1 || access > 3 || (!p.is_array && p.access != Access::read))
      return bad_declaration("parameter '{}': access {} is not possible for {}", p.name, access,
                             p.is_array ? "an array" : "a scalar");
  }
  uint64_t shared_bytes = 0;
  for (size_t i = 0; i < program.shared.size(); ++i) {
    const SharedArray& s = program.shared[i];
    if (auto bad = check_name("shared array", s.name)) return bad;
    if (!names.add(s.name)) return bad_declaration("'{}' is declared twice", s.name);
    if (!is_compute(s.type))
      return bad_declaration("shared array '{}': {} is not a type kernels compute with", s.name,
                             type_name(s.type));
    if (s.count == 0 && i + 1 != program.shared.size())
      return bad_declaration("shared array '{}': only the last may be dynamic (without a count)",
                             s.name);
    shared_bytes += uint64_t{s.count} * size_of(s.type);
    if (shared_bytes > kMaxSharedBytes)
      return bad_declaration("shared array '{}': more than {} shared bytes", s.name,
                             kMaxSharedBytes);
  }
  for (size_t r = 0; r < program.registers.size(); ++r)
    if (!is_compute(program.registers[r]))
      return bad_declaration("register %{}: {} is not a type kernels compute with", r,
                             type_name(program.registers[r]));
  return std::nullopt;
}

// ---- one instruction by itself: fields, types, symbols, immediates

std::string_view field_name(Field field) {
  switch (field) {
    case kFieldDst:
      return "result";
    case kFieldA:
      return "first operand";
    case kFieldB:
      return "second operand";
    default:
      return "third operand";
  }
}

class InstructionCheck {
 public:
  InstructionCheck(const Program& program, uint32_t index)
      : program_(program),
        index_(index),
        i_(program.body[index]),
        form_(info(i_.op).form),
        fields_(fields_of(form_)) {}

  // For size: is_plainly_right() knows most instructions.
  [[gnu::cold, gnu::noinline]] Finding run() const {
    if (auto bad = check_unused_fields()) return bad;
    if (uses(kFieldType) && !accepts(i_.op, i_.type))
      return violation(index_, "does not work on {}", type_name(i_.type));
    if (uses(kFieldFrom))
      if (auto bad = check_source()) return bad;
    if (i_.aux > 2) return violation(index_, "axis {} is not 0, 1 or 2", i_.aux);
    if (uses(kFieldDst))
      if (auto bad = check_register(kFieldDst, i_.dst)) return bad;
    for (const Operand& operand : operands_of(i_))
      if (auto bad = check_register(operand.field, operand.reg)) return bad;
    if (uses(kFieldSymbol))
      if (auto bad = check_symbol()) return bad;
    if (uses(kFieldImmediate)) {
      const unsigned bits = i_.type == DType::boolean ? 1 : bits_of(i_.type);
      if (bits < 64 && i_.immediate >> bits != 0)
        return violation(index_, "immediate {:#x} does not fit {}", i_.immediate, name_of(i_.type));
    }
    return std::nullopt;
  }

 private:
  bool uses(Field field) const { return (fields_ & field) != 0; }

  // Fields without a meaning keep their defaults: equal programs are equal data, in every form.
  Finding check_unused_fields() const {
    constexpr Instruction kDefault;
    const uint16_t fields = fields_;
    const bool clean = ((fields & kFieldType) || i_.type == kDefault.type) &&
                       ((fields & kFieldFrom) || i_.from == kDefault.from) &&
                       ((fields & kFieldAxis) || i_.aux == kDefault.aux) &&
                       ((fields & kFieldDst) || i_.dst == kDefault.dst) &&
                       ((fields & kFieldA) || i_.a == kDefault.a) &&
                       ((fields & kFieldB) || i_.b == kDefault.b) &&
                       ((fields & kFieldC) || i_.c == kDefault.c) &&
                       ((fields & kFieldSymbol) || i_.symbol == kDefault.symbol) &&
                       ((fields & kFieldImmediate) || i_.immediate == kDefault.immediate);
    if (clean) return std::nullopt;
    return violation(index_, "a field this operation does not use is set");
  }

  Finding check_source() const {
    if (!is_compute(i_.from))
      return violation(index_, "cannot convert from {}", type_name(i_.from));
    if (form_ == Form::convert) return std::nullopt;
    if (i_.from == DType::boolean || bits_of(i_.from) != bits_of(i_.type))
      return violation(index_, "{} and {} do not have the same bits; use convert", name_of(i_.from),
                       name_of(i_.type));
    return std::nullopt;
  }

  Finding check_register(Field field, Register r) const {
    if (r.index >= program_.registers.size()) {
      if (!r.valid()) return violation(index_, "the {} is missing", field_name(field));
      return violation(index_, "the {} is %{}, but there are {} registers", field_name(field),
                       r.index, program_.registers.size());
    }
    const DType has = program_.registers[r.index];
    const std::optional<DType> needs = register_type(i_, field);
    if (needs ? has == *needs : is_integer(has)) return std::nullopt;
    if (!needs)
      return violation(index_, "the index %{} is {}, expected an integer", r.index, name_of(has));
    return violation(index_, "the {} %{} is {}, expected {}", field_name(field), r.index,
                     name_of(has), name_of(*needs));
  }

  Finding check_symbol() const {
    if (is_shared_access(i_.op)) {
      if (i_.symbol >= program_.shared.size())
        return violation(index_, "there is no shared array {}", i_.symbol);
      const SharedArray& array = program_.shared[i_.symbol];
      return check_element(array.name, array.type);
    }
    if (i_.symbol >= program_.parameters.size())
      return violation(index_, "there is no parameter {}", i_.symbol);
    const Parameter& parameter = program_.parameters[i_.symbol];
    if (form_ == Form::parameter) {
      if (parameter.is_array)
        return violation(index_, "'{}' is an array; load from it", parameter.name);
      return check_element(parameter.name, parameter.type);
    }
    if (!parameter.is_array)
      return violation(index_, "'{}' is a scalar, expected an array", parameter.name);
    if (form_ == Form::length) return std::nullopt;
    const bool reads = form_ != Form::store;
    const bool writes = form_ != Form::load;
    const auto access = static_cast<uint8_t>(parameter.access);
    if (reads && !(access & static_cast<uint8_t>(Access::read)))
      return violation(index_, "'{}' is write-only", parameter.name);
    if (writes && !(access & static_cast<uint8_t>(Access::write)))
      return violation(index_, "'{}' is read-only", parameter.name);
    return check_element(parameter.name, parameter.type);
  }

  Finding check_element(std::string_view name, DType type) const {
    if (type == i_.type) return std::nullopt;
    return violation(index_, "'{}' is of {}, the operation of {}", name, name_of(type),
                     name_of(i_.type));
  }

  const Program& program_;
  const uint32_t index_;
  const Instruction& i_;
  const Form form_;
  const uint16_t fields_;
};

// ---- the same, for most instructions, as a table of what InstructionCheck asks

// What type a register has: the operation's, the source's, or this one.
enum class Kind : uint8_t { unused, type, from, boolean, u32, integer };

constexpr Kind kind_of(Instruction i, uint16_t fields, Field field) {
  if (!(fields & field)) return Kind::unused;
  i.type = DType::f64;
  i.from = DType::i8;
  const std::optional<DType> needs = register_type(i, field);
  if (!needs) return Kind::integer;
  if (*needs == i.from) return Kind::from;
  if (*needs == DType::boolean) return Kind::boolean;
  return *needs == DType::u32 ? Kind::u32 : Kind::type;
}

struct Rule {
  uint16_t fields = 0, types = 0;  // a bit a type that the operation takes
  Kind dst = Kind::unused, a = Kind::unused, b = Kind::unused, c = Kind::unused;
  Access access = Access::read;  // load, store: of its array
};

constexpr std::array<Rule, kOpcodeCount> kRules = [] {
  std::array<Rule, kOpcodeCount> rules;
  for (uint8_t op = 0; op < kOpcodeCount; ++op) {
    const Instruction i{.op = static_cast<Opcode>(op)};
    const uint16_t fields = fields_of(info(i.op).form);
    Rule& rule = rules[op];
    rule = {fields,
            0,
            kind_of(i, fields, kFieldDst),
            kind_of(i, fields, kFieldA),
            kind_of(i, fields, kFieldB),
            kind_of(i, fields, kFieldC),
            i.op == Opcode::store ? Access::write : Access::read};
    for (unsigned type = 0; type < 16; ++type)
      if (accepts(i.op, static_cast<DType>(type)))
        rule.types = static_cast<uint16_t>(rule.types | 1u << type);
  }
  return rules;
}();

// InstructionCheck finds nothing. What this is not sure of is for that to say.
bool is_plainly_right(const Program& program, const Instruction& i) {
  const Rule& rule = kRules[static_cast<uint8_t>(i.op)];
  constexpr uint16_t kPlain = kFieldType | kFieldDst | kFieldA | kFieldB | kFieldC |
                              kFieldImmediate | kFieldSymbol | kFieldAxis;
  const auto type = static_cast<unsigned>(i.type);
  if ((rule.fields & ~kPlain) != 0 || type >= 16 || !(rule.types >> type & 1)) return false;
  const DType* registers = program.registers.data();
  const size_t count = program.registers.size();
  const DType wanted[] = {DType::f32, i.type, i.from, DType::boolean, DType::u32, DType::f32};
  const auto fits = [&](Kind kind, Register r) {
    if (kind == Kind::unused) return !r.valid();
    if (r.index >= count) return false;
    return kind == Kind::integer ? is_integer(registers[r.index])
                                 : registers[r.index] == wanted[static_cast<uint8_t>(kind)];
  };
  if (!fits(rule.dst, i.dst) || !fits(rule.a, i.a) || !fits(rule.b, i.b) || !fits(rule.c, i.c))
    return false;
  if (rule.fields & kFieldSymbol) {
    if ((i.op != Opcode::load && i.op != Opcode::store) || i.symbol >= program.parameters.size())
      return false;
    const Parameter& array = program.parameters[i.symbol];
    if (!array.is_array || array.type != i.type ||
        !(static_cast<uint8_t>(array.access) & static_cast<uint8_t>(rule.access)))
      return false;
  } else if (i.symbol != Instruction::kNoSymbol) {
    return false;
  }
  if (rule.fields & kFieldAxis ? i.aux > 2 : i.aux != 0) return false;
  if (!(rule.fields & kFieldImmediate)) return i.immediate == 0 && i.from == Instruction().from;
  const unsigned bits = i.type == DType::boolean ? 1 : bits_of(i.type);
  return (bits == 64 || i.immediate >> bits == 0) && i.from == Instruction().from;
}

// ---- paths: nesting, definite assignment, loop counters

// A set of registers. Most programs have few: those take no allocation.
class RegisterSet {
 public:
  RegisterSet() = default;
  explicit RegisterSet(size_t registers) { make_room_for(registers); }
  void make_room_for(size_t registers) { more_.resize(registers / 64); }

  bool has(Register r) const { return word(r.index / 64) >> (r.index % 64) & 1; }
  void add(Register r) { word(r.index / 64) |= uint64_t{1} << (r.index % 64); }
  void remove(Register r) { word(r.index / 64) &= ~(uint64_t{1} << (r.index % 64)); }
  void keep_those_in(const RegisterSet& other) {
    first_ &= other.first_;
    for (size_t i = 0; i < more_.size(); ++i) more_[i] &= other.more_[i];
  }

 private:
  uint64_t word(size_t index) const { return index == 0 ? first_ : more_[index - 1]; }
  uint64_t& word(size_t index) { return index == 0 ? first_ : more_[index - 1]; }
  uint64_t first_ = 0;
  std::vector<uint64_t> more_;
};

// What is known at a point of the program. Where nothing arrives, everything holds.
struct Flow {
  bool reachable = false;
  RegisterSet assigned;

  bool has(Register r) const { return assigned.has(r); }
  void add(Register r) { assigned.add(r); }
  void remove(Register r) { assigned.remove(r); }
  // This point is also reached from `other`.
  void merge(const Flow& other) {
    if (!other.reachable) return;
    if (!reachable) {
      *this = other;
      return;
    }
    assigned.keep_those_in(other.assigned);
  }
};

class PathCheck {
 public:
  explicit PathCheck(const Program& program)
      : program_(program), is_counter_(program.registers.size()) {
    flow_.reachable = true;
    flow_.assigned = RegisterSet(program.registers.size());
  }

  Finding run() {
    for (index_ = 0; index_ < program_.body.size(); ++index_) {
      if (is_plain_step(program_.body[index_])) continue;
      if (auto bad = step(program_.body[index_])) return bad;
    }
    if (!open_.empty()) return violation(open_.back().begin, "is never closed by an end");
    return std::nullopt;
  }

 private:
  struct Region {
    uint32_t begin;
    Form form;
    bool has_else = false;
    Register counter;  // for
    Flow entry;        // if, for: before the first instruction inside
    Flow exit;         // if: after the then part; loop: at its breaks
  };

  // Nothing is wrong, and where the program goes on is plain; step() does the rest.
  bool is_plain_step(const Instruction& i) {
    const Form form = info(i.op).form;
    if (after_jump_ || form >= Form::if_begin) return false;
    const uint16_t fields = kRules[static_cast<uint8_t>(i.op)].fields;
    if (((fields & kFieldA) && !flow_.has(i.a)) || ((fields & kFieldB) && !flow_.has(i.b)) ||
        ((fields & kFieldC) && !flow_.has(i.c)))
      return false;
    if (!(fields & kFieldDst)) return true;
    if (is_counter_.has(i.dst)) return false;
    flow_.add(i.dst);
    return true;
  }

  [[gnu::cold, gnu::noinline]] Finding step(const Instruction& i) {
    const Form form = info(i.op).form;
    if (after_jump_ && form != Form::end && form != Form::if_else)
      return violation(index_, "can never run: it follows a {}",
                       info(program_.body[index_ - 1].op).name);
    after_jump_ = false;
    for (const Operand& operand : operands_of(i))
      if (flow_.reachable && !flow_.has(operand.reg))
        return violation(index_, "%{} may be read before it is assigned", operand.reg.index);
    if (uses(i, kFieldDst)) {
      if (is_counter_.has(i.dst))
        return violation(index_, "assigns %{}, the counter of a for around it", i.dst.index);
      if (form != Form::for_begin) flow_.add(i.dst);
    }
    switch (form) {
      case Form::if_begin:
      case Form::for_begin:
      case Form::loop_begin:
        return open(i, form);
      case Form::if_else:
        return begin_else();
      case Form::end:
        return close();
      case Form::jump:
        return jump(i.op);
      default:
        return std::nullopt;
    }
  }

  Finding open(const Instruction& i, Form form) {
    if (open_.size() == kMaxNesting)
      return violation(index_, "more than {} regions inside each other", kMaxNesting);
    Region region{index_, form};
    if (form == Form::for_begin) {
      flow_.remove(i.dst);  // after the loop the counter has no value
      region.counter = i.dst;
      is_counter_.add(i.dst);
    }
    if (form != Form::loop_begin) region.entry = flow_;
    if (form == Form::for_begin) flow_.add(i.dst);
    open_.push_back(std::move(region));
    return std::nullopt;
  }

  Finding begin_else() {
    if (open_.empty() || open_.back().form != Form::if_begin)
      return violation(index_, "without an if");
    Region& region = open_.back();
    if (region.has_else) return violation(index_, "the if at {} has an else already", region.begin);
    region.has_else = true;
    region.exit = std::move(flow_);
    flow_ = std::move(region.entry);
    return std::nullopt;
  }

  Finding close() {
    if (open_.empty()) return violation(index_, "without an if, for or loop");
    Region& region = open_.back();
    switch (region.form) {
      case Form::if_begin:
        flow_.merge(region.has_else ? region.exit : region.entry);
        break;
      case Form::for_begin:
        is_counter_.remove(region.counter);
        flow_ = std::move(region.entry);  // the body may have run no time at all
        break;
      default:
        flow_ = std::move(region.exit);
        break;
    }
    flow_.assigned.make_room_for(program_.registers.size());  // of a loop that nothing leaves
    open_.pop_back();
    return std::nullopt;
  }

  Finding jump(Opcode op) {
    if (op != Opcode::return_) {
      Region* target = nullptr;
      for (Region& region : open_)
        if (region.form != Form::if_begin) target = &region;
      if (target == nullptr) return violation(index_, "outside a for or loop");
      if (op == Opcode::break_ && target->form == Form::loop_begin) target->exit.merge(flow_);
    }
    flow_.reachable = false;
    after_jump_ = true;
    return std::nullopt;
  }

  const Program& program_;
  RegisterSet is_counter_;
  std::vector<Region> open_;
  Flow flow_;
  uint32_t index_ = 0;
  bool after_jump_ = false;
};

// ---- what a block does together

Finding check_together(const Program& program) {
  const auto together = [](const Instruction& i) {
    const Form form = info(i.op).form;
    return form == Form::barrier || form == Form::group;
  };
  bool any = false;
  for (const Instruction& i : program.body) any |= together(i);
  if (!any) return std::nullopt;
  const Uniformity uniformity = analyse_uniformity(program);
  for (uint32_t i = 0; i < program.body.size(); ++i)
    if (together(program.body[i]) && !uniformity.instructions[i])
      return violation(i,
                       "not all threads of a block may get here: it stands in or after control "
                       "flow that depends on the thread");
  return std::nullopt;
}

}  // namespace

std::optional<Violation> find_violation(const Program& program) {
  if (auto bad = check_declarations(program)) return bad;
  for (uint32_t i = 0; i < program.body.size(); ++i) {
    if (static_cast<uint8_t>(program.body[i].op) >= kOpcodeCount)
      return bad_declaration("instruction {}: there is no operation {}", i,
                             static_cast<int>(program.body[i].op));
    if (is_plainly_right(program, program.body[i])) continue;
    if (auto bad = InstructionCheck(program, i).run()) return bad;
  }
  if (auto bad = PathCheck(program).run()) return bad;
  return check_together(program);
}

Status verify(const Program& program) {
  const std::optional<Violation> bad = find_violation(program);
  if (!bad) return {};
  if (bad->instruction == Violation::kWholeProgram)
    return fail(ErrorCode::verify_error, "kernel '{}': {}", program.name, bad->message);
  return fail(ErrorCode::verify_error, "kernel '{}': instruction {} ({}): {}", program.name,
              bad->instruction, info(program.body[bad->instruction].op).name, bad->message);
}

}  // namespace hologram::isa
