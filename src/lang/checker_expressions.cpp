#include "lang/checker_impl.h"

namespace hologram::lang {

using AstKind = ast::Expr::Kind;
using ir::BinaryOp;
using ExprKind = ir::Expr::Kind;

namespace {

const std::map<std::string_view, BinaryOp> kArithmetic = {
    {"+", BinaryOp::add},     {"-", BinaryOp::sub},        {"*", BinaryOp::mul},
    {"/", BinaryOp::div},     {"//", BinaryOp::floor_div}, {"%", BinaryOp::mod},
    {"**", BinaryOp::pow},    {"<<", BinaryOp::shl},       {">>", BinaryOp::shr},
    {"&", BinaryOp::bit_and}, {"|", BinaryOp::bit_or},     {"^", BinaryOp::bit_xor},
    {"<", BinaryOp::lt},      {"<=", BinaryOp::le},        {">", BinaryOp::gt},
    {">=", BinaryOp::ge},     {"==", BinaryOp::eq},        {"!=", BinaryOp::ne}};

ir::Expr binary_expr(BinaryOp op, DType type, ir::Expr a, ir::Expr b) {
  ir::Expr e{ExprKind::binary_op, type};
  e.binary = op;
  e.args.push_back(std::move(a));
  e.args.push_back(std::move(b));
  return e;
}

}  // namespace

bool has_effects(const ir::Expr& e) {
  if (e.kind == ExprKind::call) {
    const Intrinsic* f = find_intrinsic(e.name);
    if (!f || f->kind == IntrinsicKind::atomic || f->kind == IntrinsicKind::atomic_cas ||
        f->kind == IntrinsicKind::group)
      return true;
  }
  for (const ir::Expr& arg : e.args)
    if (has_effects(arg)) return true;
  return false;
}

Value Checker::typed(DType type, ir::Expr expr, Position at) const {
  expr.type = type;
  return {Type::scalar(type), at, std::move(expr)};
}

ir::Expr Checker::cast_expr(ir::Expr e, DType to) {
  if (e.type == to) return e;
  ir::Expr cast{ExprKind::cast, to};
  cast.args.push_back(std::move(e));
  return cast;
}

std::optional<ir::Expr> Checker::coerce(const Value& v, DType to, std::string_view where) {
  if (!v.valid()) return std::nullopt;
  if (!v.branches.empty()) {
    auto then = coerce(v.branches[0], to, where), other = coerce(v.branches[1], to, where);
    if (!then || !other) return std::nullopt;
    ir::Expr e{ExprKind::if_expr, to};
    e.args = {v.expr, *std::move(then), *std::move(other)};
    return e;
  }
  if (v.constant) {
    if (fits(*v.constant, to)) return literal(*v.constant, to);
    if (v.constant->is_float || to == DType::boolean)
      report(
          v.at,
          fmt::format("{} is {}, a literal {} is not", where, name_of(to), to_string(*v.constant)),
          to == DType::boolean ? "write True or False"
                               : fmt::format("write {}({})", name_of(to), to_string(*v.constant)));
    else
      report(v.at, fmt::format("{} does not fit {}", to_string(*v.constant), name_of(to)),
             fmt::format("use a wider type, or {}({}) to wrap around", name_of(to),
                         to_string(*v.constant)));
    return std::nullopt;
  }
  if (v.type.kind == Type::Kind::array) {
    report(v.at, "a whole array is not a value", "index it: a[i]");
    return std::nullopt;
  }
  if (v.type.kind == Type::Kind::none) {
    report(v.at, "this call gives no value", "its function has no -> result");
    return std::nullopt;
  }
  if (v.type.dtype == to) return v.expr;
  if (!converts(v.type.dtype, to)) {
    report(v.at, fmt::format("{} is {}, this is {}", where, name_of(to), name_of(v.type.dtype)),
           fmt::format("convert it: {}(...)", name_of(to)));
    return std::nullopt;
  }
  return cast_expr(v.expr, to);
}

Value Checker::strong(Value v) {
  if (!v.type.is_weak()) return v;
  const DType type = v.type.kind == Type::Kind::weak_int ? DType::i32 : DType::f32;
  auto expr = coerce(v, type, "int");
  if (!expr) return invalid(v.at);
  return typed(type, *std::move(expr), v.at);
}

bool Checker::is_number(const Value& v, std::string_view what) {
  if (!v.valid()) return false;
  if (v.type.is_weak()) return true;
  if (v.type.kind == Type::Kind::array) {
    report(v.at, fmt::format("{} takes numbers, this is a whole array", what), "index it: a[i]");
    return false;
  }
  if (v.type.kind == Type::Kind::none) {
    report(v.at, "this call gives no value", "its function has no -> result");
    return false;
  }
  if (v.type.is_bool()) {
    report(v.at, fmt::format("{} takes numbers, this is bool", what),
           "convert it: i32(condition), or choose: 1 if condition else 0");
    return false;
  }
  return true;
}

bool Checker::unify(Value& a, Value& b, Position mark) {
  if (!a.valid() || !b.valid()) return false;
  const auto target = [](const Value& weak, DType other) {
    if (weak.type.kind == Type::Kind::weak_float && is_integer(other)) return float_of(other);
    return other;
  };
  DType type;
  if (a.type.is_weak() && b.type.is_weak()) {
    const bool floats =
        a.type.kind == Type::Kind::weak_float || b.type.kind == Type::Kind::weak_float;
    type = floats ? DType::f32 : DType::i32;
  } else if (a.type.is_weak()) {
    type = target(a, b.type.dtype);
  } else if (b.type.is_weak()) {
    type = target(b, a.type.dtype);
  } else {
    const auto meet = promote(a.type.dtype, b.type.dtype);
    if (!meet) {
      const std::string_view x = name_of(a.type.dtype), y = name_of(b.type.dtype);
      report(mark, fmt::format("{} and {} do not mix: no type holds both", x, y),
             a.type.is_bool() || b.type.is_bool()
                 ? "convert the bool first: i32(condition)"
                 : fmt::format("convert one of them: {}(...) or {}(...)", x, y));
      return false;
    }
    type = *meet;
  }
  auto x = coerce(a, type, "the other operand"), y = coerce(b, type, "the other operand");
  if (!x || !y) return false;
  a = typed(type, *std::move(x), a.at);
  b = typed(type, *std::move(y), b.at);
  return true;
}

Value Checker::expression(const ast::Expr& e) {
  switch (e.kind) {
    case AstKind::invalid:
      return invalid(e.at);
    case AstKind::name:
      return name(e);
    case AstKind::integer: {
      auto constant = parse_integer(e.text);
      if (!constant) {
        report(e.at, fmt::format("{} is past 64 bits", e.text), "use a float, or a smaller number");
        return invalid(e.at);
      }
      return {{Type::Kind::weak_int}, e.at, {}, constant};
    }
    case AstKind::floating:
      return {{Type::Kind::weak_float}, e.at, {}, parse_float(e.text)};
    case AstKind::boolean:
      return typed(DType::boolean, bool_literal(e.text == "True"), e.at);
    case AstKind::unary:
      return unary(e);
    case AstKind::binary: {
      Value a = expression(e.children[0]);
      Value b = expression(e.children[1]);
      Value result = binary(e.text, std::move(a), std::move(b), e.mark);
      result.at = e.at;
      return result;
    }
    case AstKind::comparison:
      return comparison_chain(e);
    case AstKind::logical:
      return logical(e);
    case AstKind::conditional:
      return conditional(e);
    case AstKind::call:
      return call(e);
    case AstKind::subscript:
      return subscript(e);
    case AstKind::attribute:
      if (e.text == "shape")
        report(e.at, ".shape needs an axis", "write a.shape[0]");
      else
        report(e.at, fmt::format("the attribute .{} is not supported", e.text),
               "an array has .shape[axis] and len(a)");
      return invalid(e.at);
  }
  return invalid(e.at);
}

Value Checker::name(const ast::Expr& e) {
  if (auto found = variables_.find(e.text); found != variables_.end()) {
    const Variable& v = found->second;
    ir::Expr expr{ExprKind::var, std::nullopt, v.ir_name};
    if (v.type.kind == Type::Kind::array) return {v.type, e.at, std::move(expr)};
    if (!v.type.is_scalar()) return invalid(e.at);
    if (flow_.reachable && !flow_.assigned.contains(v.ir_name)) {
      report(e.at, fmt::format("'{}' may have no value here", e.text),
             "assign it on every path that leads here, for instance before the if or the loop");
      return invalid(e.at);
    }
    return typed(v.type.dtype, std::move(expr), e.at);
  }
  if (auto found = constants_.find(e.text); found != constants_.end()) {
    Value value = found->second;
    value.at = e.at;
    return value;
  }
  if (signatures_.contains(e.text) || find_intrinsic(e.text))
    report(e.at, fmt::format("'{}' is a function", e.text),
           fmt::format("call it: {}(...)", e.text));
  else if (type_name(e.text))
    report(e.at, fmt::format("'{}' is a type", e.text), fmt::format("convert: {}(x)", e.text));
  else
    report(e.at, fmt::format("'{}' is not defined", e.text), suggestion(e.text));
  return invalid(e.at);
}

Value Checker::distribute(Value a, Value b,
                          const std::function<Value(const Value&, const Value&)>& fn) {
  Value* split = !a.branches.empty() ? &a : !b.branches.empty() ? &b : nullptr;
  if (!split) return fn(a, b);
  Value result{{}, split->at, split->expr};
  for (size_t i = 0; i < 2; ++i)
    result.branches.push_back(split == &a ? distribute(a.branches[i], b, fn)
                                          : distribute(a, b.branches[i], fn));
  const Value &x = result.branches[0], &y = result.branches[1];
  if (!x.valid() || !y.valid()) return invalid(split->at);
  if (!x.type.is_weak()) {  // a comparison: both are bool
    ir::Expr e{ExprKind::if_expr, x.type.dtype};
    e.args = {result.expr, x.expr, y.expr};
    return typed(x.type.dtype, std::move(e), split->at);
  }
  if (x.type.kind != y.type.kind) return mixed_literals(split->at);
  result.type.kind = x.type.kind;
  return result;
}

Value Checker::mixed_literals(Position at) {
  report(at, "the branches are an integer literal and a float literal",
         "write both as floats: 1.0, not 1");
  return invalid(at);
}

Value Checker::unary(const ast::Expr& e) {
  if (e.text == "not") {
    Value v = condition(e.children[0], "not");
    if (!v.valid()) return v;
    ir::Expr expr{ExprKind::unary_op, DType::boolean};
    expr.unary = ir::UnaryOp::logical_not;
    expr.args.push_back(std::move(v.expr));
    return typed(DType::boolean, std::move(expr), e.at);
  }
  Value v = expression(e.children[0]);
  if (!v.valid()) return v;
  if (e.text == "~" && v.type.is_bool()) {
    report(e.at, "~ of a bool is a number in Python", "write: not x");
    return invalid(e.at);
  }
  if (!is_number(v, fmt::format("unary {}", e.text))) return invalid(e.at);
  if (v.type.is_weak()) {
    return distribute(std::move(v), {{Type::Kind::weak_int}, e.at, {}, Constant{}},
                      [&](const Value& x, const Value&) -> Value {
                        Constant c = *x.constant;
                        if (e.text == "~") {
                          if (c.is_float) {
                            report(e.at, "~ takes integers, this is a float literal");
                            return invalid(e.at);
                          }
                          c.integer = ~c.integer;
                        } else if (e.text == "-") {
                          c.integer = -c.integer;
                          c.number = -c.number;
                        }
                        return {x.type, e.at, {}, c};
                      });
  }
  if (e.text == "+") return v;
  const DType type = v.type.dtype;
  if (e.text == "~" && !is_integer(type)) {
    report(e.at, fmt::format("~ takes integers, this is {}", name_of(type)));
    return invalid(e.at);
  }
  if (e.text == "-" && is_unsigned_integer(type)) {
    report(e.at, fmt::format("{} has no negative values", name_of(type)),
           fmt::format("convert it: -{}(x), or subtract: {}(0) - x",
                       bits_of(type) < 32 ? "i32" : "i64", name_of(type)));
    return invalid(e.at);
  }
  ir::Expr expr{ExprKind::unary_op, type};
  expr.unary = e.text == "~" ? ir::UnaryOp::bit_not : ir::UnaryOp::neg;
  expr.args.push_back(std::move(v.expr));
  return typed(type, std::move(expr), e.at);
}

Value Checker::binary(std::string_view op, Value a, Value b, Position mark) {
  if (!a.valid() || !b.valid()) return invalid(mark);
  const bool bitwise = op == "&" || op == "|" || op == "^";
  const BinaryOp code = kArithmetic.at(op);
  if (bitwise && a.type.is_bool() && b.type.is_bool())
    return typed(DType::boolean,
                 binary_expr(code, DType::boolean, std::move(a.expr), std::move(b.expr)), a.at);
  if (!is_number(a, op) || !is_number(b, op)) return invalid(mark);
  if (a.type.is_weak() && b.type.is_weak()) {
    return distribute(std::move(a), std::move(b), [&](const Value& x, const Value& y) -> Value {
      std::string why;
      auto c = fold(op, *x.constant, *y.constant, why);
      if (!c) {
        report(mark, why);
        return invalid(mark);
      }
      return {{c->is_float ? Type::Kind::weak_float : Type::Kind::weak_int}, x.at, {}, c};
    });
  }
  if (op == "<<" || op == ">>") return shift(op, std::move(a), std::move(b), mark);
  if (op == "**") return power(std::move(a), std::move(b), mark);
  if (op == "/" || op == "//" || op == "%") return division(op, std::move(a), std::move(b), mark);
  if (!unify(a, b, mark)) return invalid(mark);
  const DType type = a.type.dtype;
  if (bitwise && !is_integer(type)) {
    report(mark, fmt::format("{} takes integers, these are {}", op, name_of(type)));
    return invalid(mark);
  }
  return typed(type, binary_expr(code, type, std::move(a.expr), std::move(b.expr)), a.at);
}

Value Checker::division(std::string_view op, Value a, Value b, Position mark) {
  // Python divides integers into a float; next to a float an integer takes that float's type.
  const auto is_real = [](const Value& v) { return v.type.is_scalar() && is_float(v.type.dtype); };
  if (op == "/" && !is_real(a) && !is_real(b)) {
    for (Value* v : {&a, &b})
      if (v->type.is_scalar()) {
        const DType to = float_of(v->type.dtype);
        *v = typed(to, cast_expr(std::move(v->expr), to), v->at);
      }
  }
  if (b.constant && !b.constant->is_float && b.constant->integer == 0 &&
      !(a.type.is_scalar() && is_float(a.type.dtype))) {
    report(mark, "division by zero");
    return invalid(mark);
  }
  if (!unify(a, b, mark)) return invalid(mark);
  const DType type = a.type.dtype;
  return typed(type, binary_expr(kArithmetic.at(op), type, std::move(a.expr), std::move(b.expr)),
               a.at);
}

Value Checker::shift(std::string_view op, Value a, Value b, Position mark) {
  if (a.type.is_weak()) {  // 1 << n: the literal takes n's type
    auto expr = coerce(a, b.type.dtype, "the shift");
    if (!expr) return invalid(mark);
    a = typed(b.type.dtype, *std::move(expr), a.at);
  }
  ir::Expr by;
  if (b.type.is_weak()) {
    if (b.constant && !b.constant->is_float && b.constant->integer < 0) {
      report(mark, "a shift by a negative number", "shift the other way");
      return invalid(mark);
    }
    auto expr = coerce(b, DType::u32, "a shift's count");
    if (!expr) return invalid(mark);
    by = *std::move(expr);
  } else {
    by = std::move(b.expr);
  }
  for (const ir::Expr* side : {&a.expr, &by})
    if (!is_integer(*side->type)) {
      report(mark, fmt::format("{} takes integers, this is {}", op, name_of(*side->type)));
      return invalid(mark);
    }
  if (bits_of(*by.type) == 64) {  // keep counts past 32 bits large
    const DType wide = DType::u64;
    ir::Expr limit{ExprKind::call, wide, "min"};
    limit.args.push_back(cast_expr(std::move(by), wide));
    limit.args.push_back(literal({false, 255, 0}, wide));
    by = std::move(limit);
  }
  const DType type = a.type.dtype;
  return typed(type,
               binary_expr(kArithmetic.at(op), type, std::move(a.expr),
                           cast_expr(std::move(by), DType::u32)),
               a.at);
}

Value Checker::power(Value a, Value b, Position mark) {
  const auto integral = [](const Value& v) {
    return v.type.kind == Type::Kind::weak_int || (v.type.is_scalar() && is_integer(v.type.dtype));
  };
  const bool negative = b.constant && !b.constant->is_float && b.constant->integer < 0;
  if (integral(a) && integral(b) && !negative) {
    if (b.type.is_scalar() && is_signed_integer(b.type.dtype)) {
      report(
          mark,
          fmt::format("an integer to a power of {} could need a fraction", name_of(b.type.dtype)),
          "make the exponent unsigned: u32(e), or the base a float: f32(x)");
      return invalid(mark);
    }
    const DType type = a.type.is_weak() ? b.type.dtype : a.type.dtype;
    auto base = coerce(a, type, "the base");
    if (!base) return invalid(mark);
    std::optional<ir::Expr> exponent;
    if (b.type.is_weak())
      exponent = coerce(b, DType::u32, "the exponent");
    else
      exponent = cast_expr(b.expr, DType::u32);
    if (!exponent) return invalid(mark);
    return typed(type, binary_expr(BinaryOp::pow, type, *std::move(base), *std::move(exponent)),
                 a.at);
  }
  for (Value* v : {&a, &b})
    if (v->type.is_scalar() && is_integer(v->type.dtype) &&
        !(&b == v && a.type.is_scalar() && is_float(a.type.dtype))) {
      const DType to = float_of(v->type.dtype);
      *v = typed(to, cast_expr(std::move(v->expr), to), v->at);
    }
  if (!unify(a, b, mark)) return invalid(mark);
  const DType type = a.type.dtype;
  return typed(type, binary_expr(BinaryOp::pow, type, std::move(a.expr), std::move(b.expr)), a.at);
}

Value Checker::comparison(std::string_view op, Value a, Value b, Position mark) {
  if (!a.valid() || !b.valid()) return invalid(mark);
  const bool equality = op == "==" || op == "!=";
  if (!(equality && a.type.is_bool() && b.type.is_bool())) {
    if (!is_number(a, op) || !is_number(b, op)) return invalid(mark);
  }
  if (a.type.is_weak() && b.type.is_weak()) {
    return distribute(std::move(a), std::move(b), [&](const Value& x, const Value& y) -> Value {
      const int order = compare(*x.constant, *y.constant);
      const bool result = op == "<"    ? order == -1
                          : op == "<=" ? order == -1 || order == 0
                          : op == ">"  ? order == 1
                          : op == ">=" ? order == 1 || order == 0
                          : op == "==" ? order == 0
                                       : order != 0;
      return typed(DType::boolean, bool_literal(result), x.at);
    });
  }
  if (!unify(a, b, mark)) return invalid(mark);
  return typed(
      DType::boolean,
      binary_expr(kArithmetic.at(op), DType::boolean, std::move(a.expr), std::move(b.expr)), a.at);
}

Value Checker::comparison_chain(const ast::Expr& e) {
  Value left = expression(e.children[0]);
  Value result = invalid(e.at);
  bool valid = true;
  for (size_t i = 0; i < e.operators.size(); ++i) {
    if (i > 0) ++conditional_depth_;
    Value right = expression(e.children[i + 1]);
    if (i + 1 < e.operators.size() && has_effects(right.expr)) {
      report(right.at, "the middle of a comparison chain cannot be a call with effects",
             "put it in a variable first");
      right = invalid(right.at);
    }
    Value link = comparison(e.operators[i], left, right, e.children[i + 1].at);
    valid = valid && link.valid();
    if (i == 0)
      result = std::move(link);
    else if (valid)
      result = typed(DType::boolean,
                     binary_expr(BinaryOp::logical_and, DType::boolean, std::move(result.expr),
                                 std::move(link.expr)),
                     e.at);
    left = std::move(right);
  }
  conditional_depth_ -= static_cast<int>(e.operators.size()) - 1;
  if (!valid) return invalid(e.at);
  result.at = e.at;
  return result;
}

Value Checker::condition(const ast::Expr& e, std::string_view where) {
  Value v = expression(e);
  if (!v.valid() || v.type.is_bool()) return v;
  if (v.type.is_weak() || v.type.is_scalar())
    report(e.at, fmt::format("{} takes a bool, this is {}", where, to_string(v.type)),
           "compare it: x != 0");
  else if (v.type.kind == Type::Kind::array)
    report(e.at, fmt::format("{} takes a bool, this is a whole array", where), "index it: a[i]");
  else
    report(e.at, fmt::format("{} takes a bool, this call gives no value", where));
  return invalid(e.at);
}

Value Checker::logical(const ast::Expr& e) {
  const BinaryOp op = e.text == "and" ? BinaryOp::logical_and : BinaryOp::logical_or;
  Value result = condition(e.children[0], e.text);
  bool valid = result.valid();
  ++conditional_depth_;
  for (size_t i = 1; i < e.children.size(); ++i) {
    Value right = condition(e.children[i], e.text);
    valid = valid && right.valid();
    if (valid)
      result = typed(DType::boolean,
                     binary_expr(op, DType::boolean, std::move(result.expr), std::move(right.expr)),
                     e.at);
  }
  --conditional_depth_;
  return valid ? result : invalid(e.at);
}

Value Checker::conditional(const ast::Expr& e) {
  Value c = condition(e.children[0], "a conditional expression");
  ++conditional_depth_;
  Value a = expression(e.children[1]);
  Value b = expression(e.children[2]);
  --conditional_depth_;
  if (!c.valid() || !a.valid() || !b.valid()) return invalid(e.at);
  if (a.type.is_weak() && b.type.is_weak()) {
    if (a.type.kind != b.type.kind) return mixed_literals(e.at);
    const Type type = a.type;
    return {type, e.at, std::move(c.expr), {}, {std::move(a), std::move(b)}};
  }
  if (!(a.type.is_bool() && b.type.is_bool())) {
    if (!is_number(a, "a conditional expression with a number") ||
        !is_number(b, "a conditional expression with a number"))
      return invalid(e.at);
    // Python gives the chosen branch as it is, so two types of values must already agree.
    if (a.type.is_scalar() && b.type.is_scalar() && a.type.dtype != b.type.dtype) {
      report(
          e.at,
          fmt::format("the branches are {} and {}", name_of(a.type.dtype), name_of(b.type.dtype)),
          fmt::format("convert one of them, for instance {}(...)", name_of(a.type.dtype)));
      return invalid(e.at);
    }
    const Value& weak = a.type.is_weak() ? a : b;
    const Value& strong = a.type.is_weak() ? b : a;
    if (weak.type.kind == Type::Kind::weak_float && is_integer(strong.type.dtype)) {
      report(e.at, fmt::format("the branches are {} and {}", to_string(a.type), to_string(b.type)),
             fmt::format("convert one of them, for instance {}(...)",
                         name_of(float_of(strong.type.dtype))));
      return invalid(e.at);
    }
    if (!unify(a, b, e.at)) return invalid(e.at);
  }
  ir::Expr expr{ExprKind::if_expr, a.type.dtype};
  expr.args = {std::move(c.expr), std::move(a.expr), std::move(b.expr)};
  return typed(a.type.dtype, std::move(expr), e.at);
}

ir::Expr Checker::index_value(Value v) {
  if (!v.valid()) return {};
  if (v.constant && !v.constant->is_float && v.constant->integer < 0) {
    report(v.at, "a negative index does not count from the end", "write: a[len(a) - 1]");
    return {};
  }
  if (v.constant && !v.constant->is_float) {
    if (fits(*v.constant, DType::i32)) return literal(*v.constant, DType::i32);
    return literal(*v.constant, DType::u64);
  }
  Value s = strong(std::move(v));
  if (!s.valid()) return {};
  if (!s.type.is_scalar() || !is_integer(s.type.dtype)) {
    report(s.at, fmt::format("an index is an integer, this is {}", to_string(s.type)),
           s.type.is_scalar() ? "convert it: i32(x)" : "index it too: b[i]");
    return {};
  }
  return std::move(s.expr);
}

bool Checker::element(const ast::Expr& e, const Variable*& array, std::vector<ir::Expr>& indices) {
  const ast::Expr& base = e.children[0];
  if (base.kind == AstKind::subscript) {
    report(e.at, "an index after an index is not supported", "write a[i, j], not a[i][j]");
    return false;
  }
  if (base.kind != AstKind::name) {
    report(e.at, "only an array can be indexed", "a[i], with a a parameter or shared(T, n)");
    return false;
  }
  auto found = variables_.find(base.text);
  if (found == variables_.end()) {
    name(base);
    return false;
  }
  if (found->second.type.kind != Type::Kind::array) {
    if (found->second.type.is_scalar())
      report(base.at,
             fmt::format("'{}' is {}, not an array", base.text, to_string(found->second.type)),
             "only DeviceArray parameters and shared arrays can be indexed");
    return false;
  }
  array = &found->second;
  const size_t given = e.children.size() - 1;
  bool valid = true;
  for (size_t i = 1; i < e.children.size(); ++i) {
    ir::Expr index = index_value(expression(e.children[i]));
    valid = valid && index.type.has_value();
    indices.push_back(std::move(index));
  }
  if (given != array->type.rank) {
    report(e.at,
           fmt::format("'{}' has {} dimension{}, not {}", base.text, array->type.rank,
                       array->type.rank == 1 ? "" : "s", given),
           array->type.rank == 1 ? fmt::format("declare it {}: DeviceArray[{}, {}] for {} indices",
                                               base.text, name_of(array->type.dtype), given, given)
                                 : "give one index a dimension");
    return false;
  }
  return valid;
}

Value Checker::shape(const ast::Expr& array, const ast::Expr* axis, Position at) {
  if (array.kind != AstKind::name) {
    report(array.at, "only an array has a shape");
    return invalid(at);
  }
  const Variable* variable = array_argument(array);
  if (!variable) return invalid(at);
  ir::Expr e{ExprKind::shape, DType::u64, variable->ir_name};
  if (axis) {
    Value v = expression(*axis);
    if (!v.valid()) return invalid(at);
    if (!v.constant || v.constant->is_float || v.constant->integer < 0 ||
        v.constant->integer >= variable->type.rank) {
      report(axis->at, fmt::format("the axis is a literal from 0 to {}", variable->type.rank - 1),
             fmt::format("'{}' has {} dimension{}", array.text, variable->type.rank,
                         variable->type.rank == 1 ? "" : "s"));
      return invalid(at);
    }
    e.integer = static_cast<uint64_t>(v.constant->integer);
  }
  return typed(DType::u64, std::move(e), at);
}

Value Checker::subscript(const ast::Expr& e) {
  const ast::Expr& base = e.children[0];
  if (base.kind == AstKind::attribute && base.text == "shape") {
    if (e.children.size() != 2) {
      report(e.at, ".shape takes one axis", "write a.shape[0]");
      return invalid(e.at);
    }
    return shape(base.children[0], &e.children[1], e.at);
  }
  if (base.kind == AstKind::attribute) return expression(base);
  const Variable* array = nullptr;
  std::vector<ir::Expr> indices;
  if (!element(e, array, indices)) return invalid(e.at);
  ir::Expr expr{ExprKind::index, array->type.dtype, array->ir_name};
  expr.args = std::move(indices);
  return typed(array->type.dtype, std::move(expr), e.at);
}

}  // namespace hologram::lang
