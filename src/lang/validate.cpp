#include "lang/validate.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "lang/constant.h"
#include "lang/intrinsics.h"

namespace hologram::lang {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;
using Kind = Expr::Kind;

// A broken rule; caught in validate(). The rules are many and the walk is deep: an exception keeps
// each rule one line.
struct Broken {
  std::string message;
};

template <typename... Args>
[[noreturn]] void broken(fmt::format_string<Args...> format, Args&&... args) {
  throw Broken{fmt::format(format, std::forward<Args>(args)...)};
}

bool is_identifier(std::string_view name) {
  if (name.empty() || name.size() > 200 || (name[0] >= '0' && name[0] <= '9')) return false;
  for (char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
      return false;
  return true;
}

bool leaves_loop(const std::vector<Stmt>& body) {
  for (const Stmt& s : body) {
    if (s.kind == Stmt::Kind::break_) return true;
    if (s.kind == Stmt::Kind::if_ && (leaves_loop(s.body) || leaves_loop(s.orelse))) return true;
  }
  return false;
}

class Validator {
 public:
  explicit Validator(ir::Kernel& kernel) : kernel_(kernel) {}

  void run() {
    if (!is_identifier(kernel_.name)) broken("'{}' is not a name", kernel_.name);
    for (size_t i = 0; i < kernel_.functions.size(); ++i) {
      At at(*this, fmt::format("functions[{}]", i));
      ir::Function& f = kernel_.functions[i];
      if (!is_identifier(f.name)) broken("'{}' is not a name", f.name);
      if (find_intrinsic(f.name)) broken("function '{}' has an intrinsic's name", f.name);
      if (!functions_.emplace(f.name, &f).second) broken("two functions are named '{}'", f.name);
    }
    for (size_t i = 0; i < kernel_.functions.size(); ++i) {
      At at(*this, fmt::format("functions[{}]", i));
      ir::Function& f = kernel_.functions[i];
      function_ = &f;
      begin(f.params);
      statements(f.body, "body");
      if (f.result && falls_through(f.body)) broken("the function can end without a result");
    }
    check_recursion();
    if (const uint64_t size = expanded_size(kernel_); size > kMaximumSize)
      broken("with its functions written out it has {} nodes, at most {}", size, kMaximumSize);
    function_ = nullptr;
    begin(kernel_.params);
    for (size_t i = 0; i < kernel_.params.size(); ++i) {
      At at(*this, fmt::format("params[{}]", i));
      const ir::Param& p = kernel_.params[i];
      for (const ir::Param& q : kernel_.params)
        if (p.name.starts_with(q.name + "_shape"))
          broken("parameter '{}' has a name that is kept for the shape of '{}'", p.name, q.name);
    }
    if (kernel_.launch) launch(*kernel_.launch);
    statements(kernel_.body, "body");
  }

  std::string path() const {
    std::string text;
    for (const std::string& part : path_) {
      if (!text.empty() && part[0] != '[') text += '.';
      text += part;
    }
    return text;
  }

 private:
  struct Name {
    DType type;
    uint32_t rank;
  };
  // The place of the walk; what is open when a rule breaks is the place of the message.
  struct At {
    At(Validator& v, std::string part) : validator(v) { v.path_.push_back(std::move(part)); }
    ~At() {
      if (std::uncaught_exceptions() == 0) validator.path_.pop_back();
    }
    Validator& validator;
  };

  void begin(const std::vector<ir::Param>& params) {
    names_.clear();
    loops_ = depth_ = 0;
    for (size_t i = 0; i < params.size(); ++i) {
      At at(*this, fmt::format("params[{}]", i));
      const ir::Param& p = params[i];
      if (p.rank > ir::kMaximumRank)
        broken("'{}' has {} dimensions, at most {}", p.name, p.rank, ir::kMaximumRank);
      declare(p.name, p.type, p.rank);
    }
  }

  void declare(const std::string& name, DType type, uint32_t rank) {
    if (!is_identifier(name)) broken("'{}' is not a name", name);
    if (!is_compute(type)) broken("'{}': {} is not a type to compute in", name, name_of(type));
    if (!names_.emplace(name, Name{type, rank}).second) broken("'{}' is declared twice", name);
  }

  Name lookup(const std::string& name, bool array) const {
    auto found = names_.find(name);
    if (found == names_.end()) broken("there is no {} '{}'", array ? "array" : "variable", name);
    if (array && found->second.rank == 0) broken("'{}' is not an array", name);
    if (!array && found->second.rank > 0) broken("'{}' is an array, not a value", name);
    return found->second;
  }

  void launch(ir::Launch& launch) {
    At at(*this, "launch");
    if (launch.threads.empty() || launch.threads.size() > 3) broken("1 to 3 sizes are needed");
    uint64_t threads = 1;
    for (uint32_t b : launch.block) {
      if (b < 1 || b > 1024) broken("a block's size is 1 to 1024, not {}", b);
      threads *= b;
    }
    if (threads > 1024) broken("a block has at most 1024 threads, not {}", threads);
    for (size_t i = 0; i < launch.threads.size(); ++i) {
      Expr& e = launch.threads[i];
      const std::string field = fmt::format("threads[{}]", i);
      const DType type = value(e, field);
      At here(*this, field);
      if (!is_integer(type)) broken("a number of threads is an integer");
      on_host(e);
    }
  }

  void on_host(const Expr& e) const {
    if (e.kind == Kind::index || (e.kind == Kind::call && e.name != "min" && e.name != "max"))
      broken("launch sizes are made of scalar parameters, shapes and constants");
    for (const Expr& arg : e.args) on_host(arg);
  }

  // ---- statements

  void statements(std::vector<Stmt>& list, const char* field) {
    if (++depth_ > 200) broken("statements are nested too deeply");
    for (size_t i = 0; i < list.size(); ++i) {
      At at(*this, fmt::format("{}[{}]", field, i));
      statement(list[i]);
    }
    --depth_;
  }

  static void count(const Stmt& s, size_t least, size_t most) {
    if (s.values.size() < least || s.values.size() > most) broken("a value is missing or too many");
  }

  void statement(Stmt& s) {
    switch (s.kind) {
      case Stmt::Kind::let:
        count(s, 0, 1);
        if (!s.values.empty()) same(value(s.values[0], "value"), s.type, "the value");
        return declare(s.name, s.type, 0);
      case Stmt::Kind::shared: {
        if (function_ || depth_ > 1) broken("shared memory belongs to the kernel's own level");
        if (s.extents.empty() || s.extents.size() > ir::kMaximumRank)
          broken("shared memory has 1 to {} extents", ir::kMaximumRank);
        uint64_t total = 1;
        for (uint32_t n : s.extents) {
          total *= n;
          if (n == 0 || total > (1u << 20)) broken("shared memory has 1 to 1048576 elements");
        }
        return declare(s.name, s.type, static_cast<uint32_t>(s.extents.size()));
      }
      case Stmt::Kind::assign: {
        count(s, 1, 1);
        const DType type = value(s.values[0], "value");
        if (s.target.kind != Kind::var && s.target.kind != Kind::index)
          broken("the target of an assign is a var or an index");
        return same(type, value(s.target, "target"), "the value");
      }
      case Stmt::Kind::if_:
        count(s, 1, 1);
        same(value(s.values[0], "condition"), DType::boolean, "the condition");
        statements(s.body, "then");
        return statements(s.orelse, "else");
      case Stmt::Kind::for_: {
        count(s, 3, 3);
        constexpr const char* kFields[] = {"start", "stop", "step"};
        if (!is_integer(s.type)) broken("a loop counts in integers, not {}", name_of(s.type));
        for (size_t i = 0; i < 3; ++i) same(value(s.values[i], kFields[i]), s.type, kFields[i]);
        if (auto found = names_.find(s.name); found == names_.end())
          declare(s.name, s.type, 0);
        else if (found->second.rank > 0 || found->second.type != s.type)
          broken("'{}' is declared already, with another type", s.name);
        ++loops_;
        statements(s.body, "body");
        --loops_;
        return;
      }
      case Stmt::Kind::while_:
        count(s, 1, 1);
        same(value(s.values[0], "condition"), DType::boolean, "the condition");
        ++loops_;
        statements(s.body, "body");
        --loops_;
        return;
      case Stmt::Kind::break_:
      case Stmt::Kind::continue_:
        if (loops_ == 0) broken("it stands outside a loop");
        return;
      case Stmt::Kind::return_:
        if (function_ && function_->result) {
          count(s, 1, 1);
          return same(value(s.values[0], "value"), *function_->result, "the value");
        }
        if (!s.values.empty()) broken("nothing is returned here");
        return;
      case Stmt::Kind::expression:
        count(s, 1, 1);
        if (s.values[0].kind != Kind::call) broken("only a call can stand alone");
        expression(s.values[0], "value");
        return;
      case Stmt::Kind::barrier:
      case Stmt::Kind::fence:
        return;
      case Stmt::Kind::parallel_map_unary:
      case Stmt::Kind::parallel_map_binary:
        return parallel_map(s);
      case Stmt::Kind::parallel_reduce: {
        if (s.function != "add" && s.function != "mul" && s.function != "min" &&
            s.function != "max")
          broken("the op is add, mul, min or max, not '{}'", s.function);
        const DType type = vectors(s, 2)[0];
        same(vectors(s, 2)[1], type, "the output");
        if (type == DType::boolean) broken("bool has no reduction");
        return;
      }
    }
  }

  std::vector<DType> vectors(Stmt& s, size_t wanted) {
    if (s.arrays.size() != wanted) broken("{} arrays are needed", wanted);
    count(s, 1, 1);
    if (!is_integer(value(s.values[0], "count"))) broken("the count is an integer");
    std::vector<DType> types;
    for (const std::string& name : s.arrays) {
      const Name array = lookup(name, true);
      if (array.rank != 1) broken("'{}' has {} dimensions, not 1", name, array.rank);
      types.push_back(array.type);
    }
    return types;
  }

  void parallel_map(Stmt& s) {
    const size_t inputs = s.kind == Stmt::Kind::parallel_map_unary ? 1 : 2;
    const std::vector<DType> types = vectors(s, inputs + 1);
    if (auto found = functions_.find(s.function); found != functions_.end()) {
      const ir::Function& f = *found->second;
      calls_[function_].insert(&f);
      bool fitting = f.params.size() == inputs && f.result == types.back();
      for (size_t i = 0; fitting && i < inputs; ++i)
        fitting = !f.params[i].is_array() && f.params[i].type == types[i];
      if (!fitting) broken("'{}' does not map these arrays", s.function);
      return;
    }
    const Intrinsic* f = find_intrinsic(s.function);
    if (!f || f->arity != inputs ||
        (f->kind != IntrinsicKind::math && f->kind != IntrinsicKind::number))
      broken("there is no function '{}' of {} values", s.function, inputs);
    for (DType type : types) {
      same(type, types[0], "an array");
      operand(*f, type);
    }
  }

  // ---- expressions

  static void same(DType a, DType b, std::string_view what) {
    if (a != b) broken("{} is {}, expected {}", what, name_of(a), name_of(b));
  }

  // An expression that must give a value.
  DType value(Expr& e, const std::string& field) {
    expression(e, field);
    if (!e.type) {
      At at(*this, field);
      broken("it gives no value");
    }
    return *e.type;
  }

  void expression(Expr& e, const std::string& field) {
    At at(*this, field);
    if (++depth_ > 500) broken("expressions are nested too deeply");
    switch (e.kind) {
      case Kind::literal:
        literal(e);
        break;
      case Kind::var:
        e.type = lookup(e.name, false).type;
        break;
      case Kind::binary_op:
        binary(e);
        break;
      case Kind::unary_op:
        unary(e);
        break;
      case Kind::cast:
        args(e, 1);
        value(e.args[0], "value");
        if (!e.type || !is_compute(*e.type)) broken("a cast needs a type to compute in");
        break;
      case Kind::index: {
        const Name array = lookup(e.name, true);
        args(e, array.rank);
        indices(e, 0, array.rank, "indices");
        e.type = array.type;
        break;
      }
      case Kind::call:
        call(e);
        break;
      case Kind::if_expr: {
        args(e, 3);
        same(value(e.args[0], "condition"), DType::boolean, "the condition");
        ++conditional_;
        e.type = value(e.args[1], "then");
        same(value(e.args[2], "else"), *e.type, "the other branch");
        --conditional_;
        break;
      }
      case Kind::shape: {
        const Name array = lookup(e.name, true);
        if (e.integer >= array.rank) broken("'{}' has no axis {}", e.name, e.integer);
        e.type = DType::u64;
        break;
      }
    }
    --depth_;
  }

  static void args(const Expr& e, size_t wanted) {
    if (e.args.size() != wanted) broken("{} operands are needed, not {}", wanted, e.args.size());
  }

  void indices(Expr& e, size_t first, size_t count, const char* field) {
    for (size_t i = first; i < first + count; ++i) {
      const std::string place = fmt::format("{}[{}]", field, i);
      const DType type = value(e.args[i], place);
      At at(*this, place);
      if (!is_integer(type)) broken("an index is an integer, not {}", name_of(type));
    }
  }
  DType argument(Expr& e, size_t i) { return value(e.args[i], fmt::format("args[{}]", i)); }

  static void literal(const Expr& e) {
    if (!e.type || !is_compute(*e.type)) broken("a literal needs a type to compute in");
    if (*e.type == DType::boolean && e.integer > 1) broken("a bool is true or false");
    if (!is_integer(*e.type)) return;
    const Int128 number =
        is_signed_integer(*e.type) ? Int128{static_cast<int64_t>(e.integer)} : Int128{e.integer};
    if (!fits({false, number, 0}, *e.type))
      broken("{} does not fit {}", to_string(Constant{false, number, 0}), name_of(*e.type));
  }

  void unary(Expr& e) {
    args(e, 1);
    const DType type = value(e.args[0], "value");
    const bool fitting = e.unary == ir::UnaryOp::logical_not ? type == DType::boolean
                         : e.unary == ir::UnaryOp::bit_not
                             ? is_integer(type)
                             : is_signed_integer(type) || is_float(type);
    if (!fitting) broken("{} does not take {}", name_of(e.unary), name_of(type));
    e.type = type;
  }

  void binary(Expr& e) {
    args(e, 2);
    const bool logical = e.binary == BinaryOp::logical_and || e.binary == BinaryOp::logical_or;
    const DType a = value(e.args[0], "left");
    conditional_ += logical;
    const DType b = value(e.args[1], "right");
    conditional_ -= logical;
    const bool number = is_integer(a) || is_float(a);
    bool fitting = number;
    DType other = a;
    switch (e.binary) {
      case BinaryOp::div:
        fitting = is_float(a);
        break;
      case BinaryOp::pow:
        if (is_integer(a)) other = DType::u32;
        break;
      case BinaryOp::shl:
      case BinaryOp::shr:
        fitting = is_integer(a);
        other = DType::u32;
        break;
      case BinaryOp::bit_and:
      case BinaryOp::bit_or:
      case BinaryOp::bit_xor:
        fitting = is_integer(a) || a == DType::boolean;
        break;
      case BinaryOp::eq:
      case BinaryOp::ne:
        fitting = true;
        break;
      case BinaryOp::logical_and:
      case BinaryOp::logical_or:
        fitting = a == DType::boolean;
        break;
      default:
        break;
    }
    if (!fitting) broken("{} does not take {}", name_of(e.binary), name_of(a));
    same(b, other, "the right operand");
    e.type = is_comparison(e.binary) ? DType::boolean : a;
  }

  static void operand(const Intrinsic& f, DType type) {
    bool fitting = is_integer(type) || is_float(type);
    if (f.kind == IntrinsicKind::math) fitting = is_float(type);
    if (f.kind == IntrinsicKind::class_byte) fitting = type == DType::u8;
    if (f.op == isa::Opcode::abs) fitting = fitting && !is_unsigned_integer(type);
    if (!fitting) broken("{} does not take {}", f.name, name_of(type));
  }

  void call(Expr& e) {
    const Intrinsic* f = find_intrinsic(e.name);
    if (!f) return call_function(e);
    switch (f->kind) {
      case IntrinsicKind::id:
        args(e, 1);
        argument(e, 0);
        if (e.args[0].kind != Kind::literal || e.args[0].integer > 2 ||
            !is_integer(*e.args[0].type))
          broken("the axis is the literal 0, 1 or 2");
        e.type = DType::u32;
        return;
      case IntrinsicKind::atomic:
      case IntrinsicKind::atomic_cas: {
        if (e.args.empty() || e.args[0].kind != Kind::var) broken("the first argument is an array");
        const Name array = lookup(e.args[0].name, true);
        args(e, 1 + array.rank + f->arity);
        indices(e, 1, array.rank, "args");
        const bool word = array.type == DType::i32 || array.type == DType::u32 ||
                          array.type == DType::i64 || array.type == DType::u64;
        const bool floating = array.type == DType::f32 || array.type == DType::f64;
        if (!word && !(floating && f->kind == IntrinsicKind::atomic))
          broken("{} does not work on {}", f->name, name_of(array.type));
        for (size_t i = 1 + array.rank; i < e.args.size(); ++i)
          same(argument(e, i), array.type, "the argument");
        e.type = array.type;
        return;
      }
      default:
        break;
    }
    if (f->kind == IntrinsicKind::group && conditional_ > 0)
      broken("{} must be reached by every thread of the block", f->name);
    args(e, f->arity);
    for (size_t i = 0; i < e.args.size(); ++i) {
      operand(*f, argument(e, i));
      same(*e.args[i].type, *e.args[0].type, fmt::format("argument {}", i));
    }
    e.type = e.args[0].type;
  }

  void call_function(Expr& e) {
    auto found = functions_.find(e.name);
    if (found == functions_.end()) broken("there is no function '{}'", e.name);
    const ir::Function& f = *found->second;
    calls_[function_].insert(&f);
    args(e, f.params.size());
    for (size_t i = 0; i < e.args.size(); ++i) {
      const ir::Param& p = f.params[i];
      if (!p.is_array()) {
        same(argument(e, i), p.type, fmt::format("argument '{}'", p.name));
        continue;
      }
      if (e.args[i].kind != Kind::var) broken("argument '{}' is the name of an array", p.name);
      const Name array = lookup(e.args[i].name, true);
      if (array.type != p.type || array.rank != p.rank)
        broken("argument '{}' is an array of another type or rank", p.name);
    }
    e.type = f.result;
  }

  void check_recursion() {
    std::set<const ir::Function*> done, open;
    const auto visit = [&](auto& self, const ir::Function* f) -> void {
      if (done.contains(f)) return;
      if (!open.insert(f).second) broken("function '{}' calls itself", f->name);
      for (const ir::Function* callee : calls_[f]) self(self, callee);
      open.erase(f);
      done.insert(f);
    };
    for (const auto& [name, f] : functions_) visit(visit, f);
  }

  ir::Kernel& kernel_;
  ir::Function* function_ = nullptr;  // null: the kernel itself
  std::map<std::string, ir::Function*> functions_;
  std::map<const ir::Function*, std::set<const ir::Function*>> calls_;
  std::map<std::string, Name> names_;
  std::vector<std::string> path_;
  int loops_ = 0;
  int depth_ = 0;
  int conditional_ = 0;
};

class Sizes {
 public:
  explicit Sizes(const ir::Kernel& kernel) {
    for (const ir::Function& f : kernel.functions) functions_[f.name] = &f;
  }
  uint64_t of(const std::vector<Stmt>& body) {
    uint64_t total = 0;
    for (const Stmt& s : body) {
      add(total, 1 + of(s.target) + call(s.function));
      for (const Expr& e : s.values) add(total, of(e));
      add(total, of(s.body));
      add(total, of(s.orelse));
    }
    return total;
  }

 private:
  static void add(uint64_t& total, uint64_t more) {
    total = std::min<uint64_t>(total + more, uint64_t{1} << 40);
  }
  uint64_t of(const Expr& e) {
    uint64_t total = 1;
    for (const Expr& arg : e.args) add(total, of(arg));
    if (e.kind == Kind::call) add(total, call(e.name));
    return total;
  }
  uint64_t call(const std::string& name) {
    const auto found = functions_.find(name);
    if (found == functions_.end()) return 0;
    const auto [known, fresh] = sizes_.try_emplace(name, 0);
    if (fresh) {
      const uint64_t size = of(found->second->body);
      sizes_[name] = size;
    }
    return sizes_[name];
  }

  std::map<std::string, const ir::Function*> functions_;
  std::map<std::string, uint64_t> sizes_;
};

}  // namespace

uint64_t expanded_size(const ir::Kernel& kernel) { return Sizes(kernel).of(kernel.body); }

bool falls_through(const std::vector<Stmt>& body) {
  for (const Stmt& s : body) {
    switch (s.kind) {
      case Stmt::Kind::return_:
      case Stmt::Kind::break_:
      case Stmt::Kind::continue_:
        return false;
      case Stmt::Kind::if_:
        if (!falls_through(s.body) && !falls_through(s.orelse)) return false;
        break;
      case Stmt::Kind::while_:
        if (s.values[0].kind == Kind::literal && s.values[0].integer == 1 && !leaves_loop(s.body))
          return false;
        break;
      default:
        break;
    }
  }
  return true;
}

Status validate(ir::Kernel& kernel, std::string_view root) {
  Validator validator(kernel);
  try {
    validator.run();
  } catch (const Broken& rule) {
    const std::string path = validator.path();
    if (!root.empty())
      return fail(ErrorCode::verify_error, "{}{}{}: {}", root, path.empty() ? "" : ".", path,
                  rule.message);
    return fail(ErrorCode::verify_error, "kernel '{}': {}{}{}", kernel.name, path,
                path.empty() ? "" : ": ", rule.message);
  }
  return {};
}

}  // namespace hologram::lang
