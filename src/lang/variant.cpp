#include "lang/variant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "lang/constant.h"
#include "lang/intrinsics.h"
#include "lang/validate.h"

namespace hologram::lang {
namespace {

using ir::Expr;
using ir::Stmt;
using Kind = Expr::Kind;

constexpr const char* kRow = "row__";

Expr cast(Expr value, DType type) {
  Expr e;
  e.kind = Kind::cast;
  e.type = type;
  e.args.push_back(std::move(value));
  return e;
}
Expr variable(std::string name) {
  Expr e;
  e.kind = Kind::var;
  e.name = std::move(name);
  return e;
}
Expr binary(ir::BinaryOp op, Expr left, Expr right) {
  Expr e;
  e.kind = Kind::binary_op;
  e.binary = op;
  e.args.push_back(std::move(left));
  e.args.push_back(std::move(right));
  return e;
}

// Every statement, and of each every expression that gives a value, inside out.
void walk(std::vector<Stmt>& body, const std::function<void(Stmt&)>& statement,
          const std::function<void(Expr&)>& expression) {
  const std::function<void(Expr&)> inside_out = [&](Expr& e) {
    for (Expr& arg : e.args) inside_out(arg);
    expression(e);
  };
  for (Stmt& s : body) {
    for (Expr& value : s.values) inside_out(value);
    // A target is no value; its indices are.
    for (Expr& index : s.target.args) inside_out(index);
    statement(s);
    walk(s.body, statement, expression);
    walk(s.orelse, statement, expression);
  }
}

const ir::Param* find(const ir::Kernel& kernel, const std::string& name) {
  const auto at = std::ranges::find(kernel.params, name, &ir::Param::name);
  return at == kernel.params.end() ? nullptr : &*at;
}

// Only kernels that read and store elements can be changed element by element.
Status check_plain(ir::Kernel& kernel) {
  std::string problem;
  if (!kernel.functions.empty()) problem = "calls helpers";
  const auto statement = [&](Stmt& s) {
    if (s.kind == Stmt::Kind::shared) problem = "has shared memory";
    if (!s.arrays.empty()) problem = "maps or reduces whole arrays";
  };
  const auto expression = [&](Expr& e) {
    const Intrinsic* f = e.kind == Kind::call ? find_intrinsic(e.name) : nullptr;
    if (f && (f->kind == IntrinsicKind::atomic || f->kind == IntrinsicKind::atomic_cas))
      problem = "has atomics";
  };
  walk(kernel.body, statement, expression);
  if (problem.empty()) return {};
  return fail(ErrorCode::unsupported, "kernel '{}' {}: no other form of it can be made",
              kernel.name, problem);
}

}  // namespace

Result<ir::Kernel> retype(ir::Kernel kernel, DType element, DType result, DType inner) {
  HOLOGRAM_CHECK(check_plain(kernel));
  const ir::Kernel before = kernel;
  const auto was_f32 = [&](const std::string& name) {
    const ir::Param* p = find(before, name);
    return p && p->type == DType::f32;
  };
  for (ir::Param& p : kernel.params)
    if (p.type == DType::f32) p.type = element;
  const auto mark_stored = [&](Stmt& s) {
    if (s.kind != Stmt::Kind::assign || s.target.kind != Kind::index) return;
    for (ir::Param& p : kernel.params)
      if (p.name == s.target.name && was_f32(p.name)) p.type = result;
  };
  walk(kernel.body, mark_stored, [](Expr&) {});

  std::string problem;
  const auto statement = [&](Stmt& s) {
    if (s.type == DType::f32) s.type = inner;
    if (s.kind != Stmt::Kind::assign || s.target.kind != Kind::index || !was_f32(s.target.name))
      return;
    if (const DType stored = find(kernel, s.target.name)->type; stored != inner)
      s.values[0] = cast(std::move(s.values[0]), stored);
  };
  const auto expression = [&](Expr& e) {
    if (e.kind == Kind::cast && e.type == DType::f32) e.type = inner;
    if (e.kind == Kind::literal && e.type == DType::f32) {
      e.type = inner;
      if (is_integer(inner)) {
        const bool whole = e.number == std::trunc(e.number) && std::abs(e.number) < 0x1p63;
        if (!whole || !fits({false, static_cast<Int128>(e.number), 0}, inner))
          problem = fmt::format("{} is no value of {}", e.number, name_of(inner));
        else
          e.integer = static_cast<uint64_t>(static_cast<int64_t>(e.number));
      }
    }
    if ((e.kind == Kind::var || e.kind == Kind::index) && was_f32(e.name))
      if (const DType read = find(kernel, e.name)->type; read != inner)
        e = cast(std::move(e), inner);
  };
  walk(kernel.body, statement, expression);
  if (!problem.empty())
    return fail(ErrorCode::unsupported, "kernel '{}': {}", kernel.name, problem);
  HOLOGRAM_CHECK(validate(kernel));
  return kernel;
}

Result<ir::Kernel> by_rows(ir::Kernel kernel, std::span<const std::string> staying) {
  HOLOGRAM_CHECK(check_plain(kernel));
  const ir::Kernel before = kernel;
  for (const ir::Param& p : before.params) {
    if (!p.is_array()) continue;
    if (p.rank != 1)
      return fail(ErrorCode::unsupported, "kernel '{}': '{}' has {} dimensions", kernel.name,
                  p.name, p.rank);
    kernel.params.push_back({p.name + "_row", DType::u64, 0});
  }
  kernel.launch.reset();
  const auto place = [&](Expr& e) {
    if (e.kind != Kind::index || !find(before, e.name)) return;
    Expr start = binary(ir::BinaryOp::mul, variable(kRow), variable(e.name + "_row"));
    if (std::ranges::find(staying, e.name) == staying.end())
      start = binary(ir::BinaryOp::add, std::move(start), cast(std::move(e.args[0]), DType::u64));
    e.args[0] = std::move(start);
  };
  walk(
      kernel.body, [&](Stmt& s) { place(s.target); }, place);

  Expr axis;
  axis.type = DType::u32;
  axis.integer = 1;
  Expr group;
  group.kind = Kind::call;
  group.name = "get_group_id";
  group.args.push_back(std::move(axis));
  Stmt row;
  row.name = kRow;
  row.type = DType::u64;
  row.values.push_back(cast(std::move(group), DType::u64));
  kernel.body.insert(kernel.body.begin(), std::move(row));
  HOLOGRAM_CHECK(validate(kernel));
  return kernel;
}

}  // namespace hologram::lang
