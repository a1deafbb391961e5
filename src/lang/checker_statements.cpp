#include "lang/checker_impl.h"

namespace hologram::lang {

using AstKind = ast::Expr::Kind;
using StmtKind = ir::Stmt::Kind;

void Checker::statements(const std::vector<ast::Stmt>& list, std::vector<ir::Stmt>& out) {
  for (const ast::Stmt& s : list) {
    const size_t before = out.size();
    statement(s, out);
    for (size_t i = before; i < out.size(); ++i) {
      out[i].line = s.at.line;
      out[i].column = s.at.column;
    }
  }
}

void Checker::statement(const ast::Stmt& s, std::vector<ir::Stmt>& out) {
  using Kind = ast::Stmt::Kind;
  const bool launch = s.kind == Kind::expression && s.value.kind == AstKind::call &&
                      (s.value.text == "launch" || s.value.text == "block");
  if (!launch) body_began_ = true;
  switch (s.kind) {
    case Kind::assign:
      return assign(s, out);
    case Kind::annotated:
      return declare(s, out);
    case Kind::augmented:
      return augmented(s, out);
    case Kind::expression:
      return expression_statement(s, out);
    case Kind::if_:
      return if_statement(s, out);
    case Kind::for_:
      return for_statement(s, out);
    case Kind::while_:
      return while_statement(s, out);
    case Kind::return_:
      return return_statement(s, out);
    case Kind::pass:
      return;
    case Kind::break_:
    case Kind::continue_:
      if (loops_.empty()) {
        report(s.at,
               fmt::format("'{}' outside a loop", s.kind == Kind::break_ ? "break" : "continue"));
        return;
      }
      if (s.kind == Kind::break_) loops_.back().breaks.push_back(flow_);
      out.push_back({s.kind == Kind::break_ ? StmtKind::break_ : StmtKind::continue_});
      flow_.reachable = false;
      return;
  }
}

void Checker::assign(const ast::Stmt& s, std::vector<ir::Stmt>& out) {
  if (s.value.kind == AstKind::call && s.value.text == "shared") return shared_array(s, out);
  if (s.target.kind == AstKind::subscript) {
    // Python evaluates the value first.
    Value value = expression(s.value);
    return assign_element(s.target, std::move(value), out);
  }
  assign_variable(s.target, expression(s.value), out);
}

void Checker::assign_variable(const ast::Expr& target, Value value, std::vector<ir::Stmt>& out) {
  const std::string& name = target.text;
  auto found = variables_.find(name);
  if (found == variables_.end()) {
    if (const std::string what = taken(name); !what.empty()) {
      report(target.at, fmt::format("'{}' is already {}", name, what), "choose another name");
      return;
    }
    if (value.type.kind == Type::Kind::array) {
      report(target.at, "an array cannot be assigned to a variable", "use the array's own name");
      value = invalid(value.at);
    } else if (value.type.kind == Type::Kind::none) {
      report(value.at, "this call gives no value", "its function has no -> result");
      value = invalid(value.at);
    }
    value = strong(std::move(value));
    // A variable whose value was reported is known from here on, with no type.
    variables_[name] = {name, value.type, target.at};
    ir_names_.insert(name);
    flow_.assigned.insert(name);
    if (!value.valid()) return;
    ir::Stmt let{StmtKind::let, name, value.type.dtype};
    let.values.push_back(std::move(value.expr));
    out.push_back(std::move(let));
    return;
  }
  Variable& v = found->second;
  if (v.type.kind == Type::Kind::array) {
    report(target.at, fmt::format("'{}' is an array and cannot be assigned as a whole", name),
           fmt::format("assign its elements: {}[i] = ...", name));
    return;
  }
  if (!v.type.is_scalar() || !value.valid()) {
    flow_.assigned.insert(v.ir_name);
    return;
  }
  // Where the variable may have no value yet, Python's variable would take the value's own type.
  if (!v.annotated && flow_.reachable && !flow_.assigned.contains(v.ir_name)) {
    value = strong(std::move(value));
    if (value.type.is_scalar() && value.type.dtype != v.type.dtype) {
      report(value.at,
             fmt::format("'{}' is {} since line {}, this is {}", name, name_of(v.type.dtype),
                         v.at.line, name_of(value.type.dtype)),
             fmt::format("convert it: {0}(...), or declare: {1}: {0} = ...", name_of(v.type.dtype),
                         name));
      flow_.assigned.insert(v.ir_name);
      return;
    }
  }
  auto expr = coerce(value, v.type.dtype, fmt::format("'{}'", name));
  flow_.assigned.insert(v.ir_name);
  if (!expr) return;
  ir::Stmt stmt{StmtKind::assign};
  stmt.target = {ir::Expr::Kind::var, v.type.dtype, v.ir_name};
  stmt.values.push_back(*std::move(expr));
  out.push_back(std::move(stmt));
}

void Checker::assign_element(const ast::Expr& target, Value value, std::vector<ir::Stmt>& out) {
  if (target.children[0].kind == AstKind::attribute) {
    report(target.at, "a shape cannot be changed", "launch the kernel on another array");
    return;
  }
  const Variable* array = nullptr;
  std::vector<ir::Expr> indices;
  if (!element(target, array, indices)) return;
  auto expr =
      coerce(value, array->type.dtype, fmt::format("an element of '{}'", target.children[0].text));
  if (!expr) return;
  ir::Stmt stmt{StmtKind::assign};
  stmt.target = {ir::Expr::Kind::index, array->type.dtype, array->ir_name};
  stmt.target.args = std::move(indices);
  stmt.values.push_back(*std::move(expr));
  out.push_back(std::move(stmt));
}

void Checker::declare(const ast::Stmt& s, std::vector<ir::Stmt>& out) {
  if (s.target.kind != AstKind::name) {
    report(s.at, "only a variable can have a type", "write: a[i] = ...");
    return;
  }
  const std::string& name = s.target.text;
  const Type type = annotation(s.annotation, false);
  Value value = s.has_value ? expression(s.value) : invalid(s.at);
  auto found = variables_.find(name);
  if (found == variables_.end()) {
    if (const std::string what = taken(name); !what.empty()) {
      report(s.target.at, fmt::format("'{}' is already {}", name, what), "choose another name");
      return;
    }
    variables_[name] = {name, type, s.target.at, true};
    ir_names_.insert(name);
    if (s.has_value) flow_.assigned.insert(name);
    if (!type.is_scalar()) return;
    ir::Stmt let{StmtKind::let, name, type.dtype};
    if (s.has_value) {
      auto expr = coerce(value, type.dtype, fmt::format("'{}'", name));
      if (!expr) return;
      let.values.push_back(*std::move(expr));
    }
    out.push_back(std::move(let));
    return;
  }
  Variable& v = found->second;
  if (v.type.kind == Type::Kind::array ||
      (type.is_scalar() && v.type.is_scalar() && v.type != type)) {
    report(s.target.at, fmt::format("'{}' is {} since line {}", name, to_string(v.type), v.at.line),
           "a variable keeps its type; choose another name");
    return;
  }
  if (!v.annotated && v.type.is_scalar()) {
    // CPython sees the annotation of the whole function, so it has to come first.
    report(s.target.at, fmt::format("'{}' got its type on line {} already", name, v.at.line),
           "annotate the first assignment");
    return;
  }
  if (s.has_value) assign_variable(s.target, std::move(value), out);
}

void Checker::augmented(const ast::Stmt& s, std::vector<ir::Stmt>& out) {
  Value left = expression(s.target);
  Value right = expression(s.value);
  if (s.target.kind == AstKind::subscript && has_effects(left.expr)) {
    report(s.target.at, "the index of an augmented assignment cannot be a call with effects",
           "put it in a variable first");
    return;
  }
  Value value = binary(s.op, std::move(left), std::move(right), s.value.at);
  if (!value.valid()) return;
  value.at = s.at;
  if (s.target.kind == AstKind::subscript) return assign_element(s.target, std::move(value), out);
  if (!variables_.contains(s.target.text)) {
    report(s.target.at, fmt::format("'{}' is a constant", s.target.text), "use a variable");
    return;
  }
  assign_variable(s.target, std::move(value), out);
}

void Checker::shared_array(const ast::Stmt& s, std::vector<ir::Stmt>& out) {
  const ast::Expr& call = s.value;
  const auto poison = [&] {
    if (s.target.kind == AstKind::name && !variables_.contains(s.target.text))
      variables_[s.target.text] = {s.target.text, {}, s.target.at};
  };
  if (!in_kernel_ || block_depth_ > 0) {
    report(call.at, "shared() belongs to the kernel's own level, not into a helper, if or loop",
           "declare it at the top of the kernel");
    return poison();
  }
  if (s.target.kind != AstKind::name || variables_.contains(s.target.text) ||
      !taken(s.target.text).empty()) {
    report(s.target.at, "shared() needs a new name", "tile = shared(f32, 256)");
    return;
  }
  if (!arity(call, 2, 1 + ir::kMaximumRank)) return poison();
  const Type element = annotation(call.children[0], false);
  if (!element.is_scalar()) return poison();
  ir::Stmt stmt{StmtKind::shared, s.target.text, element.dtype};
  uint64_t count = 1;
  for (size_t i = 1; i < call.children.size(); ++i) {
    Value v = expression(call.children[i]);
    if (!v.valid()) return poison();
    if (!v.constant || v.constant->is_float || v.constant->integer < 1 ||
        v.constant->integer > (1 << 20)) {
      report(call.children[i].at,
             "the size of shared memory is a literal or a constant, at least 1",
             "take the largest size that is needed");
      return poison();
    }
    stmt.extents.push_back(static_cast<uint32_t>(v.constant->integer));
    count *= stmt.extents.back();
  }
  if (count > (1u << 20)) {
    report(call.at, fmt::format("{} elements of shared memory are too many", count),
           "at most 1048576");
    return poison();
  }
  const auto rank = static_cast<uint32_t>(stmt.extents.size());
  variables_[s.target.text] = {
      s.target.text, {Type::Kind::array, element.dtype, rank}, s.target.at};
  ir_names_.insert(s.target.text);
  out.push_back(std::move(stmt));
}

void Checker::if_statement(const ast::Stmt& s, std::vector<ir::Stmt>& out) {
  Value c = condition(s.value, "if");
  ir::Stmt stmt{StmtKind::if_};
  if (c.valid()) stmt.values.push_back(std::move(c.expr));
  const Flow before = flow_;
  ++block_depth_;
  statements(s.body, stmt.body);
  Flow after = std::move(flow_);
  flow_ = before;
  statements(s.orelse, stmt.orelse);
  --block_depth_;
  after.join(flow_);
  // Nothing below runs when both branches leave; what is assigned there is of no matter.
  if (!after.reachable) after.assigned.merge(flow_.assigned);
  flow_ = std::move(after);
  out.push_back(std::move(stmt));
}

void Checker::for_statement(const ast::Stmt& s, std::vector<ir::Stmt>& out) {
  if (s.value.kind != AstKind::call || s.value.text != "range") {  // reported by the parser
    ++block_depth_;
    loops_.emplace_back();
    variables_[s.target.text] = {s.target.text, {}, s.target.at};
    std::vector<ir::Stmt> ignored;
    statements(s.body, ignored);
    loops_.pop_back();
    --block_depth_;
    return;
  }
  ir::Stmt stmt{StmtKind::for_};
  std::vector<Value> bounds;
  bool valid = arity(s.value, 1, 3);
  for (const ast::Expr& arg : s.value.children) {
    bounds.push_back(expression(arg));
    valid = is_number(bounds.back(), "range()") && valid;
  }
  if (valid && bounds.size() == 1)
    bounds.insert(bounds.begin(), Value{{Type::Kind::weak_int}, s.value.at, {}, Constant{}});
  if (valid && bounds.size() == 2)
    bounds.push_back({{Type::Kind::weak_int}, s.value.at, {}, Constant{false, 1, 0}});
  if (valid && bounds[2].constant && bounds[2].constant->integer == 0 &&
      !bounds[2].constant->is_float) {
    report(bounds[2].at, "the step of range() is zero");
    valid = false;
  }
  std::optional<DType> type;
  for (const Value& v : bounds) {
    if (!valid) break;
    if (v.type.kind == Type::Kind::weak_float ||
        (v.type.is_scalar() && !is_integer(v.type.dtype))) {
      report(v.at, fmt::format("range() takes integers, this is {}", to_string(v.type)),
             "convert it: i32(x)");
      valid = false;
    } else if (v.type.is_scalar()) {
      const auto meet = type ? promote(*type, v.type.dtype) : v.type.dtype;
      if (!meet) {
        report(v.at,
               fmt::format("{} and {} do not mix: no type holds both", name_of(*type),
                           name_of(v.type.dtype)),
               fmt::format("convert one of them: {}(...)", name_of(*type)));
        valid = false;
      } else {
        type = meet;
      }
    }
  }
  const DType counter = type.value_or(DType::i32);
  for (const Value& v : bounds) {
    if (!valid) break;
    auto expr = coerce(v, counter, "range()");
    valid = expr.has_value();
    if (expr) stmt.values.push_back(*std::move(expr));
  }

  const std::string& name = s.target.text;
  std::string ir_name = name;
  auto found = variables_.find(name);
  if (found == variables_.end()) {
    if (const std::string what = taken(name); !what.empty()) {
      report(s.target.at, fmt::format("'{}' is already {}", name, what), "choose another name");
      valid = false;
    }
  } else if (found->second.type.kind == Type::Kind::array) {
    report(s.target.at, fmt::format("'{}' is an array", name), "choose another name");
    valid = false;
  } else if (found->second.type != Type::scalar(counter)) {
    if (valid && found->second.annotated && found->second.type.is_scalar()) {
      report(s.target.at,
             fmt::format("'{}' is {} since line {}, the range is {}", name,
                         to_string(found->second.type), found->second.at.line, name_of(counter)),
             "choose another name, or convert the bounds");
      valid = false;
    }
    // The loop gives the name a new variable of its own type.
    for (int n = 2; ir_names_.contains(ir_name); ++n) ir_name = fmt::format("{}__{}", name, n);
  } else {
    ir_name = found->second.ir_name;
  }
  if (found == variables_.end() || found->second.type.kind != Type::Kind::array) {
    const bool keep = found != variables_.end() && found->second.ir_name == ir_name;
    if (!keep) variables_[name] = {ir_name, valid ? Type::scalar(counter) : Type{}, s.target.at};
  }
  ir_names_.insert(ir_name);
  stmt.name = ir_name;
  stmt.type = counter;

  const Flow before = flow_;
  flow_.assigned.insert(ir_name);
  loops_.emplace_back();
  ++block_depth_;
  statements(s.body, stmt.body);
  --block_depth_;
  loops_.pop_back();
  flow_ = before;  // the body may not run at all
  if (valid) out.push_back(std::move(stmt));
}

void Checker::while_statement(const ast::Stmt& s, std::vector<ir::Stmt>& out) {
  ir::Stmt stmt{StmtKind::while_};
  Value c = condition(s.value, "while");
  const bool forever = c.valid() && c.expr.kind == ir::Expr::Kind::literal && c.expr.integer == 1;
  if (c.valid()) stmt.values.push_back(std::move(c.expr));
  const Flow before = flow_;
  loops_.emplace_back();
  ++block_depth_;
  statements(s.body, stmt.body);
  --block_depth_;
  std::vector<Flow> breaks = std::move(loops_.back().breaks);
  loops_.pop_back();
  flow_ = before;
  if (forever) {
    flow_.reachable = false;
    for (const Flow& b : breaks) flow_.join(b);
  }
  out.push_back(std::move(stmt));
}

void Checker::return_statement(const ast::Stmt& s, std::vector<ir::Stmt>& out) {
  ir::Stmt stmt{StmtKind::return_};
  Value v = s.has_value ? expression(s.value) : invalid(s.at);
  const ast::Function& f = *current_->source;
  if (s.has_value && in_kernel_)
    report(s.value.at, "a kernel returns nothing", "store into an array");
  else if (s.has_value && !f.has_result)
    report(s.value.at, fmt::format("'{}' has no result type", f.name),
           v.type.is_scalar() ? fmt::format("def {}(...) -> {}:", f.name, to_string(v.type))
                              : fmt::format("def {}(...) -> f32:", f.name));
  else if (!s.has_value && f.has_result && f.is_inline)
    report(s.at, fmt::format("'{}' must return a value", f.name), "return ...");
  else if (s.has_value && current_->result) {
    auto expr = coerce(v, *current_->result, "the result");
    if (expr) stmt.values.push_back(*std::move(expr));
  }
  flow_.reachable = false;
  out.push_back(std::move(stmt));
}

void Checker::expression_statement(const ast::Stmt& s, std::vector<ir::Stmt>& out) {
  const ast::Expr& e = s.value;
  if (e.kind == AstKind::call) {
    if (e.text == "launch" || e.text == "block") return launch_statement(e);
    if (e.text == "barrier" || e.text == "fence") {
      arity(e, 0, 0);
      if (e.text == "barrier") current_->waits = true;
      out.push_back({e.text == "barrier" ? StmtKind::barrier : StmtKind::fence});
      return;
    }
    if (e.text == "parallel_map") return parallel_map(e, out);
    if (e.text == "parallel_reduce") return parallel_reduce(e, out);
  }
  Value v = expression(e);
  if (!v.valid()) return;
  if (v.expr.kind != ir::Expr::Kind::call || !has_effects(v.expr)) {
    const bool comparison = e.kind == AstKind::comparison && e.operators[0] == "==";
    report(s.at, "this expression's value is not used",
           comparison ? "to assign, write =" : "assign it, or remove the line");
    return;
  }
  ir::Stmt stmt{StmtKind::expression};
  stmt.values.push_back(std::move(v.expr));
  out.push_back(std::move(stmt));
}

}  // namespace hologram::lang
