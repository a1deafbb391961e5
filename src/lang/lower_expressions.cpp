#include "lang/lower_impl.h"

namespace hologram::lang {

using ir::BinaryOp;
using ir::Expr;
using Kind = ir::Expr::Kind;

namespace {

bool loads(const Expr& where, const Expr& what) {
  if (where == what) return true;
  for (const Expr& arg : where.args)
    if (loads(arg, what)) return true;
  return false;
}

int size_of_tree(const Expr& e) {
  int n = 1;
  for (const Expr& arg : e.args) n += size_of_tree(arg);
  return n;
}

bool is_free_inside(const Expr& e, const Expr* done) {
  switch (e.kind) {
    case Kind::index:
      return done && loads(*done, e);
    case Kind::call: {
      const Intrinsic* f = find_intrinsic(e.name);
      if (!f || f->kind == IntrinsicKind::atomic || f->kind == IntrinsicKind::atomic_cas ||
          f->kind == IntrinsicKind::group)
        return false;
      break;
    }
    case Kind::binary_op:
      if ((e.binary == BinaryOp::floor_div || e.binary == BinaryOp::mod) && is_integer(*e.type))
        return false;                                                      // traps on zero
      if (e.binary == BinaryOp::pow && is_integer(*e.type)) return false;  // a loop
      break;
    default:
      break;
  }
  for (const Expr& arg : e.args)
    if (!is_free_inside(arg, done)) return false;
  return true;
}

Opcode opcode(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
      return Opcode::add;
    case BinaryOp::sub:
      return Opcode::sub;
    case BinaryOp::mul:
      return Opcode::mul;
    case BinaryOp::div:
      return Opcode::div;
    case BinaryOp::bit_and:
      return Opcode::bit_and;
    case BinaryOp::bit_or:
      return Opcode::bit_or;
    case BinaryOp::bit_xor:
      return Opcode::bit_xor;
    case BinaryOp::eq:
      return Opcode::eq;
    case BinaryOp::ne:
      return Opcode::ne;
    case BinaryOp::lt:
      return Opcode::lt;
    case BinaryOp::le:
      return Opcode::le;
    case BinaryOp::gt:
      return Opcode::gt;
    case BinaryOp::ge:
      return Opcode::ge;
    default:
      return Opcode::imm;  // lowered by hand
  }
}

}  // namespace

bool is_free(const Expr& e, const Expr* done) {
  return size_of_tree(e) <= 24 && is_free_inside(e, done);
}

Register Lowering::constant(DType type, int64_t value) {
  return is_float(type) ? builder_.floating(type, static_cast<double>(value))
                        : builder_.integer(type, value);
}

Register Lowering::expression(const Expr& e) {
  switch (e.kind) {
    case Kind::literal:
      return literal(e);
    case Kind::var:
      return scope().registers.at(e.name);
    case Kind::binary_op:
      return binary(e);
    case Kind::unary_op:
      return unary(e);
    case Kind::cast:
      return builder_.convert(expression(e.args[0]), *e.type);
    case Kind::index: {
      const ArrayRef& a = array(e.name);
      return load(a, offset(a, e.args.data(), e.args.size()));
    }
    case Kind::call:
      return call(e);
    case Kind::if_expr:
      return if_expr(e);
    case Kind::shape:
      return extent(array(e.name), static_cast<uint32_t>(e.integer));
  }
  return {};
}

Register Lowering::literal(const Expr& e) {
  if (*e.type == DType::boolean) return builder_.boolean(e.integer != 0);
  if (is_float(*e.type)) return builder_.floating(*e.type, e.number);
  if (is_signed_integer(*e.type)) return builder_.integer(*e.type, static_cast<int64_t>(e.integer));
  return builder_.unsigned_integer(*e.type, e.integer);
}

Register Lowering::unary(const Expr& e) {
  const Register a = expression(e.args[0]);
  return builder_.unary(e.unary == ir::UnaryOp::neg ? Opcode::neg : Opcode::bit_not, a);
}

Register Lowering::binary(const Expr& e) {
  switch (e.binary) {
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
      return logical(e);
    case BinaryOp::pow:
      return power(e);
    default:
      break;
  }
  const Register a = expression(e.args[0]);
  const Register b = expression(e.args[1]);
  switch (e.binary) {
    case BinaryOp::floor_div:
      return floor_div(a, b, e.args[1]);
    case BinaryOp::mod:
      return mod(a, b, e.args[1]);
    case BinaryOp::shl:
    case BinaryOp::shr:
      return shift(e.binary, a, b, e.args[1]);
    default:
      break;
  }
  if (is_comparison(e.binary)) return builder_.compare(opcode(e.binary), a, b);
  return builder_.binary(opcode(e.binary), a, b);
}

Register Lowering::logical(const Expr& e) {
  const bool is_and = e.binary == BinaryOp::logical_and;
  const Register a = expression(e.args[0]);
  if (is_free(e.args[1], &e.args[0]))
    return builder_.binary(is_and ? Opcode::bit_and : Opcode::bit_or, a, expression(e.args[1]));
  const Register result = builder_.variable(DType::boolean);
  builder_.assign(result, a);
  builder_.begin_if(is_and ? a : builder_.unary(Opcode::bit_not, a));
  builder_.assign(result, expression(e.args[1]));
  builder_.end();
  return result;
}

Register Lowering::if_expr(const Expr& e) {
  const Register condition = expression(e.args[0]);
  if (is_free(e.args[1], &e.args[0]) && is_free(e.args[2], &e.args[0])) {
    const Register a = expression(e.args[1]);
    return builder_.select(condition, a, expression(e.args[2]));
  }
  const Register result = builder_.variable(*e.type);
  builder_.begin_if(condition);
  builder_.assign(result, expression(e.args[1]));
  builder_.begin_else();
  builder_.assign(result, expression(e.args[2]));
  builder_.end();
  return result;
}

// ---- memory

Register Lowering::extent(const ArrayRef& a, uint32_t axis) {
  if (a.is_shared) return builder_.unsigned_integer(DType::u64, a.sizes[axis]);
  if (a.extents.empty()) return builder_.length(a.global);
  return a.extents[axis];
}

Register Lowering::offset(const ArrayRef& a, const Expr* indices, size_t count) {
  Register at = expression(indices[0]);
  if (count == 1) return at;
  // Row-major, in 64 bits (shared arrays are small: 32): no product of extents can overflow.
  const DType type = a.is_shared ? DType::u32 : DType::u64;
  at = builder_.convert(at, type);
  for (size_t i = 1; i < count; ++i) {
    const Register n = a.is_shared ? builder_.unsigned_integer(type, a.sizes[i])
                                   : extent(a, static_cast<uint32_t>(i));
    at = builder_.add(builder_.mul(at, n), builder_.convert(expression(indices[i]), type));
  }
  return at;
}

Register Lowering::load(const ArrayRef& a, Register index) {
  if (a.is_shared) return builder_.load(a.local, index);
  uses_[a.parameter].first = true;
  return builder_.load(a.global, index);
}

void Lowering::store(const ArrayRef& a, Register index, Register value) {
  if (a.is_shared) return builder_.store(a.local, index, value);
  uses_[a.parameter].second = true;
  builder_.store(a.global, index, value);
}

// ---- calls

Register Lowering::id(const Intrinsic& f, int axis) {
  if (f.op != Opcode::imm) return builder_.id(f.op, axis);
  return builder_.mul(builder_.id(Opcode::grid_size, axis), builder_.id(Opcode::block_size, axis));
}

Register Lowering::atomic(const Intrinsic& f, const Expr& e) {
  const ArrayRef& a = array(e.args[0].name);
  const size_t rank = e.args.size() - 1 - f.arity;
  const Register index = offset(a, &e.args[1], rank);
  const Register value = expression(e.args[1 + rank]);
  if (!a.is_shared) uses_[a.parameter] = {true, true};
  if (f.kind == IntrinsicKind::atomic)
    return a.is_shared ? builder_.atomic(f.op, a.local, index, value)
                       : builder_.atomic(f.op, a.global, index, value);
  const Register desired = expression(e.args[2 + rank]);
  return a.is_shared ? builder_.atomic_cas(a.local, index, value, desired)
                     : builder_.atomic_cas(a.global, index, value, desired);
}

Register Lowering::apply(const std::string& function, const std::vector<Register>& args) {
  if (const ir::Function* f = find_function(function)) return *helper(*f, args, {});
  const Intrinsic& f = *find_intrinsic(function);
  if (f.kind == IntrinsicKind::group) return builder_.group(f.op, args[0]);
  if (args.size() == 1) return builder_.unary(f.op, args[0]);
  if (args.size() == 2) return builder_.binary(f.op, args[0], args[1]);
  return builder_.ternary(f.op, args[0], args[1], args[2]);
}

Register Lowering::call(const Expr& e) {
  const Intrinsic* f = find_intrinsic(e.name);
  if (!f) return call_helper(e).value_or(Register{});
  if (f->kind == IntrinsicKind::id) return id(*f, static_cast<int>(e.args[0].integer));
  if (f->kind == IntrinsicKind::atomic || f->kind == IntrinsicKind::atomic_cas)
    return atomic(*f, e);
  std::vector<Register> args;
  for (const Expr& arg : e.args) args.push_back(expression(arg));
  return apply(e.name, args);
}

const ir::Function* Lowering::find_function(const std::string& name) const {
  for (const ir::Function& f : kernel_.functions)
    if (f.name == name) return &f;
  return nullptr;
}

std::optional<Register> Lowering::call_helper(const Expr& e) {
  const ir::Function& f = *find_function(e.name);
  std::vector<Register> scalars;
  std::vector<ArrayRef> held;  // copies: scopes_ grows while the helper is written
  for (size_t i = 0; i < e.args.size(); ++i) {
    if (f.params[i].is_array())
      held.push_back(array(e.args[i].name));
    else
      scalars.push_back(expression(e.args[i]));
  }
  std::vector<const ArrayRef*> arrays;
  for (const ArrayRef& a : held) arrays.push_back(&a);
  return helper(f, scalars, arrays);
}

}  // namespace hologram::lang
