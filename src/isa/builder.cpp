#include "isa/builder.h"

#include <fmt/format.h>

#include <limits>

#include "isa/literal.h"
#include "isa/verifier.h"

namespace hologram::isa {
void Builder::mistake(std::string message) {
  if (first_mistake_.empty())
    first_mistake_ = fmt::format("instruction {}: {}", program_.body.size(), message);
}

Register Builder::fresh(DType type) {
  program_.registers.push_back(type);
  return {static_cast<uint32_t>(program_.registers.size() - 1)};
}

void Builder::emit(Instruction instruction) {
  if (!dead_) program_.body.push_back(instruction);
}

Register Builder::emit(Instruction instruction, DType result) {
  instruction.dst = fresh(result);
  emit(instruction);
  return instruction.dst;
}

void Builder::expect(Opcode op, DType type, std::initializer_list<Register> operands) {
  for (Register r : operands) {
    if (!known(r))
      mistake(fmt::format("{}: an operand is not a register of this builder", info(op).name));
    else if (type_of(r) != type)
      mistake(fmt::format("{}: operand %{} is {}, expected {}", info(op).name, r.index,
                          name_of(type_of(r)), name_of(type)));
  }
}

Builder::Array Builder::array(std::string name, DType type, Access access) {
  program_.parameters.push_back({std::move(name), true, type, access});
  return {static_cast<uint32_t>(program_.parameters.size() - 1), type};
}

Builder::Scalar Builder::scalar(std::string name, DType type) {
  program_.parameters.push_back({std::move(name), false, type, Access::read});
  return {static_cast<uint32_t>(program_.parameters.size() - 1), type};
}

Builder::Shared Builder::shared(std::string name, DType type, uint32_t count) {
  program_.shared.push_back({std::move(name), type, count});
  return {static_cast<uint32_t>(program_.shared.size() - 1), type};
}

Register Builder::variable(DType type) { return fresh(type); }

void Builder::assign(Register dst, Register value) {
  expect(Opcode::mov, type_of(dst), {dst, value});
  emit({.op = Opcode::mov, .type = type_of(dst), .dst = dst, .a = value});
}

Register Builder::bits(DType type, uint64_t bits) {
  return emit({.op = Opcode::imm, .type = type, .immediate = bits}, type);
}

Register Builder::boolean(bool value) { return bits(DType::boolean, value); }

Register Builder::integer(DType type, int64_t value) {
  if (value >= 0 || !is_integer(type)) return unsigned_integer(type, static_cast<uint64_t>(value));
  if (!is_signed_integer(type) ||
      value < std::numeric_limits<int64_t>::min() >> (64 - bits_of(type)))
    mistake(fmt::format("imm: {} does not fit {}", value, name_of(type)));
  return bits(type, static_cast<uint64_t>(value) & (~uint64_t{0} >> (64 - bits_of(type))));
}

Register Builder::unsigned_integer(DType type, uint64_t value) {
  if (!is_integer(type)) {
    mistake(fmt::format("imm: an integer constant of type {}", name_of(type)));
    return bits(type, 0);
  }
  const unsigned value_bits = bits_of(type) - is_signed_integer(type);
  if (value_bits < 64 && value >> value_bits != 0)
    mistake(fmt::format("imm: {} does not fit {}", value, name_of(type)));
  return bits(type, value);
}

Register Builder::floating(DType type, double value) {
  if (!is_float(type))
    mistake(fmt::format("imm: a floating-point constant of type {}", name_of(type)));
  return bits(type, float_bits(type, value));
}

Register Builder::value(Scalar parameter) {
  return emit({.op = Opcode::param, .type = parameter.type, .symbol = parameter.symbol},
              parameter.type);
}

Register Builder::length(Array array) {
  return emit({.op = Opcode::length, .type = DType::u64, .symbol = array.symbol}, DType::u64);
}

Register Builder::convert(Register a, DType to) {
  if (known(a) && type_of(a) == to) return a;
  expect(Opcode::convert, type_of(a), {a});
  return emit({.op = Opcode::convert, .type = to, .from = type_of(a), .a = a}, to);
}

Register Builder::bitcast(Register a, DType to) {
  if (known(a) && type_of(a) == to) return a;
  expect(Opcode::bitcast, type_of(a), {a});
  return emit({.op = Opcode::bitcast, .type = to, .from = type_of(a), .a = a}, to);
}

Register Builder::unary(Opcode op, Register a) {
  if (info(op).form != Form::unary) mistake(fmt::format("{} is not unary", info(op).name));
  expect(op, type_of(a), {a});
  return emit({.op = op, .type = type_of(a), .a = a}, type_of(a));
}

Register Builder::binary(Opcode op, Register a, Register b) {
  if (info(op).form != Form::binary) mistake(fmt::format("{} is not binary", info(op).name));
  expect(op, type_of(a), {a, b});
  return emit({.op = op, .type = type_of(a), .a = a, .b = b}, type_of(a));
}

Register Builder::ternary(Opcode op, Register a, Register b, Register c) {
  if (info(op).form != Form::ternary) mistake(fmt::format("{} is not ternary", info(op).name));
  expect(op, type_of(a), {a, b, c});
  return emit({.op = op, .type = type_of(a), .a = a, .b = b, .c = c}, type_of(a));
}

Register Builder::compare(Opcode op, Register a, Register b) {
  if (info(op).form != Form::compare) mistake(fmt::format("{} is not a comparison", info(op).name));
  expect(op, type_of(a), {a, b});
  return emit({.op = op, .type = type_of(a), .a = a, .b = b}, DType::boolean);
}

Register Builder::select(Register condition, Register if_true, Register if_false) {
  expect(Opcode::select, DType::boolean, {condition});
  expect(Opcode::select, type_of(if_true), {if_true, if_false});
  const DType type = type_of(if_true);
  return emit({.op = Opcode::select, .type = type, .a = condition, .b = if_true, .c = if_false},
              type);
}

Register Builder::shift(Opcode op, Register a, Register amount_u32) {
  if (info(op).form != Form::shift) mistake(fmt::format("{} is not a shift", info(op).name));
  expect(op, type_of(a), {a});
  expect(op, DType::u32, {amount_u32});
  return emit({.op = op, .type = type_of(a), .a = a, .b = amount_u32}, type_of(a));
}

Register Builder::id(Opcode op, int axis, DType type) {
  if (info(op).form != Form::id) mistake(fmt::format("{} is not an id", info(op).name));
  if (axis < 0 || axis > 2)
    mistake(fmt::format("{}: axis {} is not 0, 1 or 2", info(op).name, axis));
  return emit({.op = op, .type = type, .aux = static_cast<uint8_t>(axis)}, type);
}

Register Builder::load(Array array, Register index) {
  return emit({.op = Opcode::load, .type = array.type, .a = index, .symbol = array.symbol},
              array.type);
}

void Builder::store(Array array, Register index, Register value) {
  expect(Opcode::store, array.type, {value});
  emit({.op = Opcode::store, .type = array.type, .a = index, .b = value, .symbol = array.symbol});
}

Register Builder::load(Shared array, Register index) {
  return emit({.op = Opcode::load_shared, .type = array.type, .a = index, .symbol = array.symbol},
              array.type);
}

void Builder::store(Shared array, Register index, Register value) {
  expect(Opcode::store_shared, array.type, {value});
  emit({.op = Opcode::store_shared,
        .type = array.type,
        .a = index,
        .b = value,
        .symbol = array.symbol});
}

Opcode Builder::shared_form(Opcode op) {
  constexpr int kDistance =
      static_cast<int>(Opcode::atomic_add_shared) - static_cast<int>(Opcode::atomic_add);
  return is_global_atomic(op) ? static_cast<Opcode>(static_cast<int>(op) + kDistance) : op;
}

Register Builder::atomic(Opcode op, Array array, Register index, Register value) {
  if (!is_global_atomic(op) || info(op).form != Form::atomic)
    mistake(fmt::format("{} is not an atomic with one operand", info(op).name));
  expect(op, array.type, {value});
  return emit({.op = op, .type = array.type, .a = index, .b = value, .symbol = array.symbol},
              array.type);
}

Register Builder::atomic(Opcode op, Shared array, Register index, Register value) {
  op = shared_form(op);
  if (!is_atomic(op) || info(op).form != Form::atomic)
    mistake(fmt::format("{} is not an atomic with one operand", info(op).name));
  expect(op, array.type, {value});
  return emit({.op = op, .type = array.type, .a = index, .b = value, .symbol = array.symbol},
              array.type);
}

Register Builder::atomic_cas(Array array, Register index, Register expected, Register desired) {
  expect(Opcode::atomic_cas, array.type, {expected, desired});
  return emit({.op = Opcode::atomic_cas,
               .type = array.type,
               .a = index,
               .b = expected,
               .c = desired,
               .symbol = array.symbol},
              array.type);
}

Register Builder::atomic_cas(Shared array, Register index, Register expected, Register desired) {
  expect(Opcode::atomic_cas_shared, array.type, {expected, desired});
  return emit({.op = Opcode::atomic_cas_shared,
               .type = array.type,
               .a = index,
               .b = expected,
               .c = desired,
               .symbol = array.symbol},
              array.type);
}

void Builder::barrier() { emit({.op = Opcode::barrier}); }
void Builder::fence() { emit({.op = Opcode::fence}); }

Register Builder::group(Opcode op, Register a) {
  if (info(op).form != Form::group)
    mistake(fmt::format("{} is not a group reduction", info(op).name));
  expect(op, type_of(a), {a});
  return emit({.op = op, .type = type_of(a), .a = a}, type_of(a));
}

// ---- control flow

void Builder::open(Instruction instruction) {
  emit(instruction);
  open_.push_back(instruction.op);
  if (dead_) ++dead_regions_;
}

void Builder::begin_if(Register condition) {
  expect(Opcode::if_begin, DType::boolean, {condition});
  open({.op = Opcode::if_begin, .a = condition});
}

void Builder::begin_else() {
  if (open_.empty() || open_.back() != Opcode::if_begin)
    return mistake("else without an if that is still open");
  open_.back() = Opcode::if_else;
  if (dead_regions_ == 0) dead_ = false;
  emit({.op = Opcode::if_else});
}

Register Builder::begin_for(Register begin, Register end, Register step) {
  const DType type = type_of(begin);
  expect(Opcode::for_begin, type, {begin, end, step});
  const Register counter = fresh(type);
  open({.op = Opcode::for_begin, .type = type, .dst = counter, .a = begin, .b = end, .c = step});
  return counter;
}

void Builder::begin_loop() { open({.op = Opcode::loop_begin}); }

void Builder::end() {
  if (open_.empty()) return mistake("end without an open if, for or loop");
  open_.pop_back();
  if (dead_regions_ > 0) {
    --dead_regions_;
    return;  // the region was never written
  }
  dead_ = false;
  emit({.op = Opcode::end});
}

void Builder::jump(Opcode op) {
  bool in_loop = false;
  for (Opcode open : open_) in_loop |= open == Opcode::for_begin || open == Opcode::loop_begin;
  if (op != Opcode::return_ && !in_loop)
    return mistake(fmt::format("{} outside a for or loop", info(op).name));
  emit({.op = op});
  dead_ = true;
}

void Builder::break_() { jump(Opcode::break_); }
void Builder::continue_() { jump(Opcode::continue_); }
void Builder::return_() { jump(Opcode::return_); }

void Builder::if_(Register condition, FunctionRef<void()> then_body) {
  begin_if(condition);
  then_body();
  end();
}

void Builder::if_else(Register condition, FunctionRef<void()> then_body,
                      FunctionRef<void()> else_body) {
  begin_if(condition);
  then_body();
  begin_else();
  else_body();
  end();
}

void Builder::for_(Register begin, Register end_value, Register step,
                   FunctionRef<void(Register)> body) {
  const Register counter = begin_for(begin, end_value, step);
  body(counter);
  end();
}

void Builder::loop(FunctionRef<void()> body) {
  begin_loop();
  body();
  end();
}

Result<Program> Builder::finish() {
  if (!open_.empty())
    mistake(fmt::format("the program ends inside {} open region{}", open_.size(),
                        open_.size() == 1 ? "" : "s"));
  if (!first_mistake_.empty())
    return fail(ErrorCode::verify_error, "kernel '{}': {}", program_.name, first_mistake_);
  HOLOGRAM_CHECK(verify(program_));
  return std::move(program_);
}

}  // namespace hologram::isa
