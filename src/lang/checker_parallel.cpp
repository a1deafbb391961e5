// launch(), block(), parallel_map() and parallel_reduce().
#include "lang/checker_impl.h"

namespace hologram::lang {

using AstKind = ast::Expr::Kind;
using StmtKind = ir::Stmt::Kind;

namespace {

constexpr std::array<std::array<uint32_t, 3>, 3> kDefaultBlocks = {
    {{256, 1, 1}, {16, 16, 1}, {8, 8, 4}}};

// Whether the host can evaluate it before the launch.
bool on_host(const ir::Expr& e, const std::set<std::string>& parameters) {
  using Kind = ir::Expr::Kind;
  if (e.kind == Kind::index) return false;
  if (e.kind == Kind::var && !parameters.contains(e.name)) return false;
  if (e.kind == Kind::call && e.name != "min" && e.name != "max") return false;
  for (const ir::Expr& arg : e.args)
    if (!on_host(arg, parameters)) return false;
  return true;
}

}  // namespace

void Checker::launch_statement(const ast::Expr& call) {
  if (!in_kernel_ || block_depth_ > 0 || body_began_) {
    report(call.at, fmt::format("{}() stands at the top of a kernel", call.text),
           "move it above the other statements");
    return;
  }
  if (!arity(call, 1, 3)) return;
  if (!launch_) launch_.emplace();
  if (call.text == "block") {
    uint64_t threads = 1;
    std::array<uint32_t, 3> block = {1, 1, 1};
    for (size_t i = 0; i < call.children.size(); ++i) {
      Value v = expression(call.children[i]);
      if (!v.valid()) return;
      if (!v.constant || v.constant->is_float || v.constant->integer < 1 ||
          v.constant->integer > 1024) {
        report(call.children[i].at,
               "the size of a block is a literal or a constant from 1 to 1024");
        return;
      }
      block[i] = static_cast<uint32_t>(v.constant->integer);
      threads *= block[i];
    }
    if (threads > 1024) {
      report(call.at, fmt::format("a block of {} threads is too large", threads), "at most 1024");
      return;
    }
    launch_->block = block;
    block_given_ = true;
    return;
  }
  if (explicit_launch_) {
    report(call.at, "launch() stands once in a kernel");
    return;
  }
  explicit_launch_ = true;
  std::set<std::string> parameters;
  for (const ir::Param& p : current_->params) parameters.insert(p.name);
  for (const ast::Expr& child : call.children) {
    Value v = strong(expression(child));
    if (!v.valid()) return;
    if (!v.type.is_scalar() || !is_integer(v.type.dtype) || !on_host(v.expr, parameters)) {
      report(child.at, "launch() takes integers made of scalar parameters, shapes and constants",
             "launch(n), launch(a.shape[1], a.shape[0])");
      return;
    }
    launch_->threads.push_back(std::move(v.expr));
  }
  if (!block_given_) launch_->block = kDefaultBlocks[launch_->threads.size() - 1];
}

void Checker::launch_one_block() {
  for (uint32_t size : launch_->block)
    launch_->threads.push_back(literal({false, size, 0}, DType::u32));
  while (launch_->threads.size() > 1 && launch_->block[launch_->threads.size() - 1] == 1)
    launch_->threads.pop_back();
}

const Variable* Checker::array_argument(const ast::Expr& e) {
  if (e.kind == AstKind::name) {
    auto found = variables_.find(e.text);
    if (found != variables_.end() && found->second.type.kind == Type::Kind::array)
      return &found->second;
    if (found != variables_.end() && !found->second.type.is_scalar()) return nullptr;  // reported
    if (found == variables_.end()) {
      name(e);
      return nullptr;
    }
  }
  const bool indexed = e.kind == AstKind::subscript && e.children[0].kind == AstKind::name;
  report(e.at, "a whole array is expected here",
         indexed ? fmt::format("give the array's name, without an index: {0}; an atomic takes the "
                               "index behind it: atomic_add({0}, i, value)",
                               e.children[0].text)
                 : "give the array's name");
  return nullptr;
}

Value Checker::count_argument(const ast::Expr& e) {
  Value v = strong(expression(e));
  if (v.valid() && (!v.type.is_scalar() || !is_integer(v.type.dtype))) {
    report(e.at, fmt::format("the count is an integer, this is {}", to_string(v.type)),
           "give the number of elements: n, or len(a)");
    return invalid(e.at);
  }
  return v;
}

void Checker::default_launch(const Value& count, bool one_block) {
  if (explicit_launch_ || !in_kernel_ || block_depth_ > 0) return;
  std::set<std::string> parameters;
  for (const ir::Param& p : current_->params) parameters.insert(p.name);
  if (!on_host(count.expr, parameters)) return;
  if (!launch_) launch_.emplace();
  if (!one_block)
    launch_->threads = {count.expr};
  else if (launch_->threads.empty())
    launch_->threads = {literal({false, launch_->block[0], 0}, DType::u32)};
}

void Checker::parallel_map(const ast::Expr& call, std::vector<ir::Stmt>& out) {
  if (!arity(call, 4, 5)) return;
  const bool binary = call.children.size() == 5;
  const size_t inputs = binary ? 2 : 1;
  ir::Stmt stmt{binary ? StmtKind::parallel_map_binary : StmtKind::parallel_map_unary};
  const ast::Expr& function = call.children[0];
  std::vector<const Variable*> arrays;
  for (size_t i = 1; i < call.children.size() - 1; ++i) {
    arrays.push_back(array_argument(call.children[i]));
    if (arrays.back() && arrays.back()->type.rank != 1) {
      report(call.children[i].at, "parallel_map() takes arrays of one dimension",
             "declare it DeviceArray[T]");
      arrays.back() = nullptr;
    }
  }
  Value count = count_argument(call.children.back());
  for (const Variable* array : arrays)
    if (!array) return;
  if (!count.valid()) return;
  const std::string wanted = fmt::format("an @inline function or a math function of {} argument{}",
                                         inputs, binary ? "s" : "");
  if (function.kind != AstKind::name) {
    report(function.at, "the first argument of parallel_map() is a function's name", wanted);
    return;
  }
  if (auto found = signatures_.find(function.text); found != signatures_.end()) {
    const Signature& s = found->second;
    if (!s.valid) return;
    bool fitting = s.source->is_inline && s.params.size() == inputs && s.result &&
                   *s.result == arrays.back()->type.dtype;
    for (size_t i = 0; fitting && i < inputs; ++i)
      fitting = !s.params[i].is_array() && s.params[i].type == arrays[i]->type.dtype;
    if (!fitting) {
      report(function.at, fmt::format("'{}' does not map these arrays", function.text),
             fmt::format("its parameters and its result must have the arrays' element types"));
      return;
    }
    current_->calls.try_emplace(function.text, function.at);
  } else {
    const Intrinsic* f = find_intrinsic(function.text);
    const bool fitting = f && f->arity == inputs &&
                         (f->kind == IntrinsicKind::math || f->kind == IntrinsicKind::number);
    if (!fitting) {
      report(function.at, fmt::format("'{}' is not {}", function.text, wanted));
      return;
    }
    const DType type = arrays.back()->type.dtype;
    bool same = f->kind == IntrinsicKind::number ? type != DType::boolean : is_float(type);
    for (const Variable* array : arrays) same = same && array->type.dtype == type;
    if (f->op == isa::Opcode::abs) same = same && !is_unsigned_integer(type);
    if (!same) {
      report(function.at, fmt::format("'{}' does not map these arrays", function.text),
             "they must have one element type, a float for math functions");
      return;
    }
  }
  stmt.function = function.text;
  for (const Variable* array : arrays) stmt.arrays.push_back(array->ir_name);
  default_launch(count, false);
  stmt.values.push_back(std::move(count.expr));
  out.push_back(std::move(stmt));
}

void Checker::parallel_reduce(const ast::Expr& call, std::vector<ir::Stmt>& out) {
  if (!arity(call, 4, 4)) return;
  const ast::Expr& op = call.children[0];
  const Variable* input = array_argument(call.children[1]);
  const Variable* output = array_argument(call.children[2]);
  Value count = count_argument(call.children[3]);
  if (op.kind != AstKind::name ||
      (op.text != "add" && op.text != "mul" && op.text != "min" && op.text != "max")) {
    report(op.at, "the first argument of parallel_reduce() is add, mul, min or max",
           "parallel_reduce(add, a, result, n)");
    return;
  }
  if (!input || !output || !count.valid()) return;
  for (size_t i = 1; i <= 2; ++i) {
    const Type& type = (i == 1 ? input : output)->type;
    if (type.rank != 1 || type.dtype == DType::boolean) {
      report(call.children[i].at, "parallel_reduce() takes arrays of numbers of one dimension");
      return;
    }
  }
  if (input->type.dtype != output->type.dtype) {
    report(call.children[2].at,
           fmt::format("the input is {}, the result is {}", name_of(input->type.dtype),
                       name_of(output->type.dtype)),
           "give them one element type");
    return;
  }
  current_->waits = true;
  ir::Stmt stmt{StmtKind::parallel_reduce};
  stmt.function = op.text;
  stmt.arrays = {input->ir_name, output->ir_name};
  default_launch(count, true);
  stmt.values.push_back(std::move(count.expr));
  out.push_back(std::move(stmt));
}

}  // namespace hologram::lang
