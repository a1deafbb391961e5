#include "lang/checker.h"
#include "lang/checker_impl.h"

namespace hologram::lang {

void Flow::join(const Flow& other) {
  if (!other.reachable) return;
  if (!reachable) {
    *this = other;
    return;
  }
  std::erase_if(assigned, [&](const std::string& name) { return !other.assigned.contains(name); });
}

std::string Checker::taken(const std::string& name) const {
  if (type_name(name) || name == "DeviceArray") return "a type";
  static const std::set<std::string_view> kWords = {
      "range",           "len",    "shared", "barrier", "fence", "launch", "block", "parallel_map",
      "parallel_reduce", "inline", "add",    "mul",     "fabs",  "fmin",   "fmax",  "fabsf",
      "fminf",           "fmaxf"};
  const bool with_f = name.ends_with('f') && find_intrinsic(name.substr(0, name.size() - 1)) &&
                      find_intrinsic(name.substr(0, name.size() - 1))->kind == IntrinsicKind::math;
  if (find_intrinsic(name) || kWords.contains(name) || with_f) return "a function of the language";
  if (signatures_.contains(name)) return "a function of this file";
  if (constants_.contains(name)) return "a constant of this file";
  return "";
}

Type Checker::annotation(const ast::Expr& e, bool arrays_too) {
  using Kind = ast::Expr::Kind;
  if (e.kind == Kind::invalid) return {};
  if (e.kind == Kind::name) {
    if (const auto type = type_name(e.text)) return Type::scalar(*type);
    if (e.text == "DeviceArray") {
      report(e.at, "DeviceArray needs its element type", "DeviceArray[f32]");
      return {};
    }
    const auto stored = dtype_from_name(e.text);
    // NumPy's and C's names of the same types.
    static const std::map<std::string_view, std::string_view> kElsewhere = {
        {"float16", "f16"}, {"half", "f16"},   {"bfloat16", "bf16"}, {"float32", "f32"},
        {"float64", "f64"}, {"double", "f64"}, {"int8", "i8"},       {"int16", "i16"},
        {"int32", "i32"},   {"int64", "i64"},  {"uint8", "u8"},      {"uint16", "u16"},
        {"uint32", "u32"},  {"uint64", "u64"}, {"boolean", "bool"}};
    const auto meant = kElsewhere.find(e.text);
    report(e.at,
           stored ? fmt::format("{} is for storage only: kernels do not compute in it", e.text)
                  : fmt::format("there is no type '{}'", e.text),
           meant != kElsewhere.end()
               ? fmt::format("write {}", meant->second)
               : "the types are bool, i8..i64, u8..u64, f16, bf16, f32, f64, int (i32) and float "
                 "(f32)");
    return {};
  }
  if (e.kind == Kind::subscript && e.children[0].kind == Kind::name &&
      e.children[0].text == "DeviceArray") {
    if (!arrays_too) {
      report(e.at, "only a parameter can be a DeviceArray",
             "index the parameter, or use shared(T, n)");
      return {};
    }
    if (e.children.size() > 3) {
      report(e.at, "DeviceArray takes an element type and a number of dimensions",
             "DeviceArray[f32, 2]");
      return {};
    }
    const Type element = annotation(e.children[1], false);
    if (!element.is_scalar()) return {};
    uint32_t rank = 1;
    if (e.children.size() == 3) {
      Value v = expression(e.children[2]);
      if (!v.valid()) return {};
      if (!v.constant || v.constant->is_float || v.constant->integer < 1 ||
          v.constant->integer > ir::kMaximumRank) {
        report(e.children[2].at,
               fmt::format("the number of dimensions is a literal from 1 to {}", ir::kMaximumRank));
        return {};
      }
      rank = static_cast<uint32_t>(v.constant->integer);
    }
    return {Type::Kind::array, element.dtype, rank};
  }
  report(e.at, "this is not a type", "DeviceArray[f32], u32, f32, ...");
  return {};
}

void Checker::read_constants() {
  for (const ast::Stmt& s : module_.constants) {
    const std::string& name = s.target.text;
    if (const std::string what = taken(name); !what.empty()) {
      report(s.target.at, fmt::format("'{}' is already {}", name, what), "choose another name");
      continue;
    }
    Value v = expression(s.value);
    if (s.kind == ast::Stmt::Kind::annotated) {
      const Type type = annotation(s.annotation, false);
      if (!type.is_scalar() || !v.valid()) {
        constants_[name] = invalid(s.at);
        continue;
      }
      auto expr = coerce(v, type.dtype, fmt::format("'{}'", name));
      constants_[name] = expr ? typed(type.dtype, *std::move(expr), s.at) : invalid(s.at);
      continue;
    }
    const bool constant = v.constant || v.expr.kind == ir::Expr::Kind::literal;
    if (v.valid() && !constant) {
      report(s.value.at, "a module constant is made of literals and other constants");
      v = invalid(s.at);
    }
    constants_[name] = std::move(v);
  }
}

void Checker::read_signatures() {
  for (const ast::Function& f : module_.functions) {
    // A kernel may have a math function's name: as in Python, that name then means the kernel.
    const Intrinsic* same = find_intrinsic(f.name);
    const bool shadows = !f.is_inline && same && same->kind == IntrinsicKind::math &&
                         !signatures_.contains(f.name) && !constants_.contains(f.name);
    if (const std::string what = taken(f.name); !what.empty() && !shadows) {
      report(f.at, fmt::format("'{}' is already {}", f.name, what), "choose another name");
      continue;
    }
    signatures_[f.name].source = &f;
  }
  for (auto& [name, signature] : signatures_) {
    const ast::Function& f = *signature.source;
    std::set<std::string> seen;
    for (const ast::Parameter& p : f.parameters) {
      const Type type = annotation(p.annotation, true);
      if (const std::string what = taken(p.name); !what.empty())
        report(p.at, fmt::format("'{}' is already {}", p.name, what), "choose another name");
      if (!seen.insert(p.name).second)
        report(p.at, fmt::format("there are two parameters named '{}'", p.name));
      for (const ast::Parameter& q : f.parameters)
        if (p.name.starts_with(q.name + "_shape"))
          report(p.at, fmt::format("'{}' is kept for the shape of '{}'", p.name, q.name),
                 fmt::format("write {}.shape[0], or choose another name", q.name));
      if (p.name == "launch__")
        report(p.at, "'launch__' is kept for the launch", "choose another name");
      if (type.kind == Type::Kind::invalid) signature.valid = false;
      signature.params.push_back({p.name, type.dtype, type.rank});
    }
    if (f.has_result) {
      const Type type = annotation(f.result, false);
      if (!f.is_inline)
        report(f.result.at, "a kernel returns nothing",
               "store into an array; a helper that returns a value is marked @inline");
      if (type.is_scalar())
        signature.result = type.dtype;
      else
        signature.valid = false;
    }
  }
}

void Checker::check_function(Signature& signature) {
  const ast::Function& f = *signature.source;
  current_ = &signature;
  in_kernel_ = !f.is_inline;
  variables_.clear();
  ir_names_.clear();
  flow_ = {};
  loops_.clear();
  launch_.reset();
  explicit_launch_ = block_given_ = body_began_ = false;
  for (size_t i = 0; i < signature.params.size(); ++i) {
    const ir::Param& p = signature.params[i];
    Type type = p.is_array() ? Type{Type::Kind::array, p.type, p.rank} : Type::scalar(p.type);
    // A parameter whose type was reported is known by name, so that its uses say nothing more.
    if (!signature.valid) {
      const ast::Expr& a = f.parameters[i].annotation;
      const bool array = a.kind == ast::Expr::Kind::subscript && p.is_array();
      if (!array && !(a.kind == ast::Expr::Kind::name && type_name(a.text))) type = {};
    }
    variables_[p.name] = {p.name, type, f.parameters[i].at, true, true};
    ir_names_.insert(p.name);
    flow_.assigned.insert(p.name);
  }
  signature.body.name = f.name;
  signature.body.params = signature.params;
  signature.body.result = signature.result;
  statements(f.body, signature.body.body);
  if (launch_ && launch_->threads.empty()) launch_one_block();
  if (f.has_result && f.is_inline && flow_.reachable)
    report(f.at, fmt::format("'{}' can end without returning a value", f.name),
           "add a return at the end");
}

void Checker::check_calls() {
  // Depth first from every helper: a call of something still open closes a circle.
  std::map<std::string, int> state;
  const std::function<bool(const std::string&)> visit = [&](const std::string& name) -> bool {
    Signature& s = signatures_[name];
    if (state[name] == 2) return s.waits;
    state[name] = 1;
    for (const auto& [callee, at] : s.calls) {
      if (state[callee] == 1)
        report(at, fmt::format("'{}' calls itself: helpers are not recursive", callee),
               "write a loop");
      else if (visit(callee))
        s.waits = true;
    }
    state[name] = 2;
    return s.waits;
  };
  for (const auto& [name, signature] : signatures_) visit(name);
  for (const auto& [name, at] : conditional_calls_)
    if (signatures_[name].waits)
      report(at, fmt::format("{}() waits for the block and must be reached by every thread", name),
             "call it into a variable before the and, or, or if expression");
}

void Checker::collect(const Signature& from, std::set<std::string>& seen, ir::Kernel& kernel) {
  for (const auto& [name, at] : from.calls) {
    if (!seen.insert(name).second) continue;
    collect(signatures_[name], seen, kernel);
    kernel.functions.push_back(signatures_[name].body);
  }
}

std::vector<ir::Kernel> Checker::run() {
  read_constants();
  read_signatures();
  std::vector<ir::Kernel> kernels;
  for (const ast::Function& f : module_.functions) {
    auto found = signatures_.find(f.name);
    if (found == signatures_.end() || found->second.source != &f) continue;
    check_function(found->second);
    if (f.is_inline) continue;
    ir::Kernel kernel;
    kernel.name = f.name;
    kernel.doc = f.doc;
    kernel.params = found->second.params;
    kernel.launch = launch_;
    kernels.push_back(std::move(kernel));
  }
  check_calls();
  if (!diagnostics_.empty()) return {};
  for (ir::Kernel& kernel : kernels) {
    std::set<std::string> seen;
    const Signature& s = signatures_[kernel.name];
    kernel.body = s.body.body;
    collect(s, seen, kernel);
  }
  return kernels;
}

std::vector<ir::Kernel> check(const ast::Module& module, Diagnostics& diagnostics) {
  return Checker(module, diagnostics).run();
}

}  // namespace hologram::lang
