#include <algorithm>
#include <cmath>
#include <numeric>

#include "lang/checker_impl.h"

namespace hologram::lang {

using ExprKind = ir::Expr::Kind;

namespace {

struct Resolved {
  const Intrinsic* intrinsic = nullptr;
  bool f32_only = false;
};

// expf is exp of f32 only; fabs, fmin and fmax are C's names of abs, min and max.
Resolved resolve(std::string_view name) {
  if (const Intrinsic* f = find_intrinsic(name)) return {f, false};
  if (name == "fabs" || name == "fmin" || name == "fmax") return {find_intrinsic(name.substr(1))};
  if (name == "fabsf" || name == "fminf" || name == "fmaxf")
    return {find_intrinsic(name.substr(1, name.size() - 2)), true};
  if (name.ends_with('f')) {
    const Intrinsic* f = find_intrinsic(name.substr(0, name.size() - 1));
    if (f && f->kind == IntrinsicKind::math) return {f, true};
  }
  return {};
}

size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1])});
      corner = above;
    }
  }
  return row[b.size()];
}

constexpr std::string_view kStatementCalls[] = {"barrier", "fence",        "launch",
                                                "block",   "parallel_map", "parallel_reduce"};

}  // namespace

std::optional<DType> type_name(std::string_view name) {
  if (name == "int") return DType::i32;
  if (name == "float") return DType::f32;
  const auto type = dtype_from_name(name);
  if (!type || !is_compute(*type)) return std::nullopt;
  return type;
}

std::string Checker::suggestion(const std::string& name) const {
  std::string best;
  size_t least = name.size() <= 3 ? 2 : 3;
  const auto offer = [&](std::string_view candidate) {
    const size_t d = distance(name, candidate);
    if (d < least) {
      least = d;
      best = candidate;
    }
  };
  for (const auto& [n, v] : variables_) offer(n);
  for (const auto& [n, v] : constants_) offer(n);
  for (const auto& [n, v] : signatures_) offer(n);
  for (const Intrinsic& f : intrinsics()) offer(f.name);
  return best.empty() ? "" : fmt::format("did you mean '{}'?", best);
}

bool Checker::arity(const ast::Expr& e, size_t least, size_t most) {
  const size_t given = e.children.size();
  if (given >= least && given <= most) return true;
  const std::string wanted = least == most ? fmt::format("{}", least)
                             : most >= 64  ? fmt::format("at least {}", least)
                                           : fmt::format("{} to {}", least, most);
  report(e.at, fmt::format("{}() takes {} argument{}, not {}", e.text, wanted,
                           least == 1 && most == 1 ? "" : "s", given));
  return false;
}

Value Checker::call(const ast::Expr& e) {
  if (const auto type = type_name(e.text)) return cast(*type, e);
  if (e.text == "len") {
    if (!arity(e, 1, 1)) return invalid(e.at);
    return shape(e.children[0], nullptr, e.at);
  }
  if (auto found = signatures_.find(e.text); found != signatures_.end())
    return helper(found->second, e);
  if (const Resolved r = resolve(e.text); r.intrinsic)
    return intrinsic(*r.intrinsic, r.f32_only, e);
  if (e.text == "range")
    report(e.at, "range() belongs into a for loop", "for i in range(n):");
  else if (e.text == "shared")
    report(e.at, "shared() is assigned to a name at the kernel's own level",
           "tile = shared(f32, 256)");
  else if (std::ranges::find(kStatementCalls, e.text) != std::end(kStatementCalls))
    report(e.at, fmt::format("{}() gives no value", e.text), "write it on a line of its own");
  else if (variables_.contains(e.text))
    report(e.at, fmt::format("'{}' is a variable, not a function", e.text));
  else if (e.text == "print")
    report(e.at, "print() is not supported", "store into an array and look at it on the host");
  else
    report(e.at, fmt::format("there is no function '{}'", e.text), suggestion(e.text));
  for (const ast::Expr& arg : e.children)  // their own mistakes are worth saying too
    if (arg.kind != ast::Expr::Kind::name) expression(arg);
  return invalid(e.at);
}

Value Checker::cast(DType to, const ast::Expr& e) {
  if (!arity(e, 1, 1)) return invalid(e.at);
  return cast_value(to, expression(e.children[0]), e);
}

Value Checker::cast_value(DType to, Value v, const ast::Expr& e) {
  if (!v.valid()) return invalid(e.at);
  if (!v.branches.empty()) {  // a literal each: the conversion goes to both
    Value a = cast_value(to, v.branches[0], e), b = cast_value(to, v.branches[1], e);
    if (!a.valid() || !b.valid()) return invalid(e.at);
    ir::Expr expr{ExprKind::if_expr, to};
    expr.args = {std::move(v.expr), std::move(a.expr), std::move(b.expr)};
    return typed(to, std::move(expr), e.at);
  }
  if (v.constant) {
    Constant c = *v.constant;
    if (to == DType::boolean) return typed(to, bool_literal(c.as_double() != 0), e.at);
    if (is_integer(to) && c.is_float) {  // saturates, as at run time
      const Int128 low = is_signed_integer(to) ? -(Int128{1} << (bits_of(to) - 1)) : 0;
      const Int128 high = low + (Int128{1} << bits_of(to)) - 1;
      const double whole = std::trunc(v.constant->number);
      c = {false, 0, 0};
      if (whole >= 0x1p64)
        c.integer = high;
      else if (whole <= -0x1p63)
        c.integer = low;
      else if (!std::isnan(whole))
        c.integer = std::clamp(static_cast<Int128>(whole), low, high);
    }
    if (is_integer(to) && bits_of(to) < 64) {  // wraps around, as at run time
      const Int128 span = Int128{1} << bits_of(to);
      c.integer = ((c.integer % span) + span) % span;
      if (is_signed_integer(to) && c.integer >= span / 2) c.integer -= span;
    }
    return typed(to, literal(c, to), e.at);
  }
  v = strong(std::move(v));
  if (!v.valid()) return invalid(e.at);
  if (!v.type.is_scalar()) {
    report(e.at, fmt::format("{}() converts one value, this is {}", e.text, to_string(v.type)),
           v.type.kind == Type::Kind::array ? "index it: a[i]" : "");
    return invalid(e.at);
  }
  return typed(to, cast_expr(std::move(v.expr), to), e.at);
}

Value Checker::intrinsic(const Intrinsic& f, bool f32_only, const ast::Expr& e) {
  if (f.kind == IntrinsicKind::atomic || f.kind == IntrinsicKind::atomic_cas) return atomic(f, e);
  if (f.kind == IntrinsicKind::id) {
    if (!arity(e, 0, 1)) return invalid(e.at);
    ir::Expr expr{ExprKind::call, DType::u32, std::string(f.name)};
    Constant axis;
    if (!e.children.empty()) {
      Value v = expression(e.children[0]);
      if (!v.valid()) return invalid(e.at);
      if (!v.constant || v.constant->is_float || v.constant->integer < 0 ||
          v.constant->integer > 2) {
        report(e.children[0].at, "the axis is the literal 0, 1 or 2");
        return invalid(e.at);
      }
      axis = *v.constant;
    }
    expr.args.push_back(literal(axis, DType::u32));
    return typed(DType::u32, std::move(expr), e.at);
  }
  const bool variadic = f.name == "min" || f.name == "max";
  if (!arity(e, f.arity, variadic ? 64 : f.arity)) return invalid(e.at);
  std::vector<Value> args;
  bool valid = true;
  for (const ast::Expr& child : e.children) {
    args.push_back(expression(child));
    valid = is_number(args.back(), fmt::format("{}()", e.text)) && valid;
  }
  if (!valid) return invalid(e.at);
  if (f32_only) {
    for (Value& v : args) {
      auto expr = coerce(v, DType::f32, fmt::format("the argument of {}()", e.text));
      if (!expr) return invalid(e.at);
      v = typed(DType::f32, *std::move(expr), v.at);
    }
  }
  switch (f.kind) {
    case IntrinsicKind::math:
      return math(f, f32_only, e, std::move(args));
    case IntrinsicKind::number:
      return number(f, e, std::move(args));
    case IntrinsicKind::class_byte: {
      ir::Expr expr{ExprKind::call, DType::u8, std::string(f.name)};
      for (Value& v : args) {
        auto arg = coerce(v, DType::u8, fmt::format("the argument of {}()", e.text));
        if (!arg) return invalid(e.at);
        expr.args.push_back(*std::move(arg));
      }
      return typed(DType::u8, std::move(expr), e.at);
    }
    default:
      break;  // group
  }
  Value v = strong(std::move(args[0]));
  if (!v.valid()) return invalid(e.at);
  if (conditional_depth_ > 0) {
    report(e.at, fmt::format("{}() must be reached by every thread of the block", e.text),
           "compute it into a variable before the and, or, or if expression");
    return invalid(e.at);
  }
  if (!inside_function(e)) return invalid(e.at);
  current_->waits = true;
  ir::Expr expr{ExprKind::call, v.type.dtype, std::string(f.name)};
  const DType type = v.type.dtype;
  expr.args.push_back(std::move(v.expr));
  return typed(type, std::move(expr), e.at);
}

Value Checker::math(const Intrinsic& f, bool, const ast::Expr& e, std::vector<Value> args) {
  using isa::Opcode;
  const bool rounding = f.op == Opcode::floor || f.op == Opcode::ceil || f.op == Opcode::trunc ||
                        f.op == Opcode::round;
  if (rounding) {  // an integer is whole already
    const Type& t = args[0].type;
    if (t.kind == Type::Kind::weak_int || (t.is_scalar() && is_integer(t.dtype))) {
      args[0].at = e.at;
      return args[0];
    }
  }
  std::optional<DType> type;
  for (Value& v : args) {
    if (!v.type.is_scalar()) continue;
    const DType own = is_integer(v.type.dtype) ? float_of(v.type.dtype) : v.type.dtype;
    // An integer among floats takes the float's type, as in arithmetic.
    if (is_integer(v.type.dtype) && std::ranges::any_of(args, [](const Value& o) {
          return o.type.is_scalar() && is_float(o.type.dtype);
        }))
      continue;
    type = type ? *promote(*type, own) : own;
  }
  const DType to = type.value_or(DType::f32);
  ir::Expr expr{ExprKind::call, to, std::string(f.name)};
  for (Value& v : args) {
    auto arg = coerce(v, to, fmt::format("the argument of {}()", e.text));
    if (!arg) return invalid(e.at);
    expr.args.push_back(*std::move(arg));
  }
  return typed(to, std::move(expr), e.at);
}

Value Checker::number(const Intrinsic& f, const ast::Expr& e, std::vector<Value> args) {
  if (f.op == isa::Opcode::abs) {
    Value v = std::move(args[0]);
    if (v.type.is_weak())
      return distribute(std::move(v), {{Type::Kind::weak_int}, e.at, {}, Constant{}},
                        [&](const Value& x, const Value&) -> Value {
                          Constant c = *x.constant;
                          c.integer = c.integer < 0 ? -c.integer : c.integer;
                          c.number = std::abs(c.number);
                          return {x.type, e.at, {}, c};
                        });
    v.at = e.at;
    if (is_unsigned_integer(v.type.dtype)) return v;
    const DType type = v.type.dtype;
    ir::Expr expr{ExprKind::call, type, "abs"};
    expr.args.push_back(std::move(v.expr));
    return typed(type, std::move(expr), e.at);
  }
  Value result = std::move(args[0]);
  for (size_t i = 1; i < args.size() && result.valid(); ++i) {
    result = minmax(f, std::move(result), std::move(args[i]));
    result.at = e.at;
  }
  return result;
}

Value Checker::minmax(const Intrinsic& f, Value a, Value b) {
  if (a.type.is_weak() && b.type.is_weak()) {
    if (a.type.kind != b.type.kind) return mixed_literals(b.at);
    return distribute(std::move(a), std::move(b), [&](const Value& x, const Value& y) -> Value {
      const int order = compare(*y.constant, *x.constant);
      const bool second = f.op == isa::Opcode::min ? order == -1 : order == 1;
      return second ? y : x;
    });
  }
  const Position mark = b.at;
  if (!unify(a, b, mark)) return invalid(mark);
  const DType type = a.type.dtype;
  ir::Expr expr{ExprKind::call, type, std::string(f.name)};
  expr.args.push_back(std::move(a.expr));
  expr.args.push_back(std::move(b.expr));
  return typed(type, std::move(expr), a.at);
}

Value Checker::atomic(const Intrinsic& f, const ast::Expr& e) {
  if (e.children.empty()) {
    arity(e, 2u + f.arity, 2u + f.arity);
    return invalid(e.at);
  }
  const Variable* array = array_argument(e.children[0]);
  if (!array) return invalid(e.at);
  const size_t wanted = 1 + array->type.rank + f.arity;
  if (!arity(e, wanted, wanted)) return invalid(e.at);
  const DType type = array->type.dtype;
  const bool word =
      type == DType::i32 || type == DType::u32 || type == DType::i64 || type == DType::u64;
  const bool floating = type == DType::f32 || type == DType::f64;
  if (!word && !(floating && f.kind == IntrinsicKind::atomic)) {
    report(e.at, fmt::format("{}() does not work on {}", e.text, name_of(type)),
           f.kind == IntrinsicKind::atomic ? "atomics take i32, u32, i64, u64, f32 and f64"
                                           : "atomic_cas takes i32, u32, i64 and u64");
    return invalid(e.at);
  }
  ir::Expr expr{ExprKind::call, type, std::string(f.name)};
  expr.args.push_back({ExprKind::var, std::nullopt, array->ir_name});
  bool valid = true;
  for (size_t i = 1; i < e.children.size(); ++i) {
    Value v = expression(e.children[i]);
    if (i <= array->type.rank) {
      expr.args.push_back(index_value(std::move(v)));
      valid = valid && expr.args.back().type.has_value();
    } else {
      auto value = coerce(v, type, fmt::format("an element of '{}'", e.children[0].text));
      valid = valid && value.has_value();
      if (value) expr.args.push_back(*std::move(value));
    }
  }
  return valid ? typed(type, std::move(expr), e.at) : invalid(e.at);
}

bool Checker::inside_function(const ast::Expr& call) {
  if (current_) return true;
  report(call.at, fmt::format("{}() belongs into a function", call.text),
         "module constants and annotations are made of literals and other constants");
  return false;
}

Value Checker::helper(Signature& callee, const ast::Expr& e) {
  if (!callee.source->is_inline) {
    report(e.at, fmt::format("'{}' is a kernel and cannot be called from another function", e.text),
           "put @inline above it to make it a helper");
    return invalid(e.at);
  }
  if (!arity(e, callee.params.size(), callee.params.size()) || !callee.valid) return invalid(e.at);
  if (!inside_function(e)) return invalid(e.at);
  current_->calls.try_emplace(e.text, e.at);
  if (conditional_depth_ > 0) conditional_calls_.emplace_back(e.text, e.at);
  ir::Expr expr{ExprKind::call, callee.result, e.text};
  bool valid = true;
  for (size_t i = 0; i < callee.params.size(); ++i) {
    const ir::Param& param = callee.params[i];
    if (param.is_array()) {
      const Variable* array = array_argument(e.children[i]);
      if (array && (array->type.dtype != param.type || array->type.rank != param.rank)) {
        report(e.children[i].at,
               fmt::format("parameter '{}' is {}, this is {}", param.name,
                           to_string(Type{Type::Kind::array, param.type, param.rank}),
                           to_string(array->type)));
        array = nullptr;
      }
      valid = valid && array;
      if (array) expr.args.push_back({ExprKind::var, std::nullopt, array->ir_name});
    } else {
      Value v = expression(e.children[i]);
      auto arg = coerce(v, param.type, fmt::format("parameter '{}'", param.name));
      valid = valid && arg.has_value();
      if (arg) expr.args.push_back(*std::move(arg));
    }
  }
  if (!valid) return invalid(e.at);
  if (!callee.result) return {{Type::Kind::none}, e.at, std::move(expr)};
  return typed(*callee.result, std::move(expr), e.at);
}

}  // namespace hologram::lang
