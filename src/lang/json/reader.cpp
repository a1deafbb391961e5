#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "lang/json/json.h"
#include "lang/validate.h"

namespace hologram::lang {
namespace {

using Json = nlohmann::json;
using ir::Expr;
using ir::Stmt;

struct BadJson {
  std::string message;
};

constexpr int kMaximumDepth = 550;  // the IR's own limits (validate.cpp) are below

// One JSON object and its place. Every field must be read: what is left over is an error.
class Object {
 public:
  Object(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) fail("expected an object");
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw BadJson{path_ + ": " + message};
  }
  std::string place(const char* field) const { return path_ + "." + field; }

  bool has(const char* field) const { return json_.contains(field); }
  const Json& at(const char* field) {
    auto found = json_.find(field);
    if (found == json_.end()) fail(fmt::format("'{}' is missing", field));
    read_.insert(field);
    return *found;
  }
  std::string text(const char* field) {
    const Json& j = at(field);
    if (!j.is_string()) fail(fmt::format("'{}' is not a string", field));
    return j.get<std::string>();
  }
  uint64_t count(const char* field, uint64_t most) {
    const Json& j = at(field);
    if (!j.is_number_integer() || (!j.is_number_unsigned() && j.get<int64_t>() < 0) ||
        j.get<uint64_t>() > most)
      fail(fmt::format("'{}' is not a number from 0 to {}", field, most));
    return j.get<uint64_t>();
  }
  DType type(const char* field) {
    const std::string name = text(field);
    const auto type = dtype_from_name(name);
    if (!type || !is_compute(*type))
      fail(fmt::format("'{}': there is no type '{}' to compute in", field, name));
    return *type;
  }
  const Json& array(const char* field) {
    const Json& j = at(field);
    if (!j.is_array()) fail(fmt::format("'{}' is not an array", field));
    return j;
  }
  void done() const {
    for (const auto& [key, value] : json_.items())
      if (!read_.contains(key)) fail(fmt::format("unknown field '{}'", key));
  }

 private:
  const Json& json_;
  std::string path_;
  std::set<std::string> read_;
};

class Reader {
 public:
  ir::Kernel document(const Json& json) {
    Object o(json, "$");
    const uint64_t version = o.count("version", 1000000);
    if (version != ir::kVersion)
      o.fail(fmt::format("version {} is not supported; this reader knows version {}", version,
                         ir::kVersion));
    ir::Kernel kernel = this->kernel(o.at("kernel"));
    o.done();
    return kernel;
  }

 private:
  struct Deeper {
    Deeper(Reader& r, const Object& at) : reader(r) {
      if (++r.depth_ > kMaximumDepth) at.fail("nested too deeply");
    }
    ~Deeper() { --reader.depth_; }
    Reader& reader;
  };

  ir::Kernel kernel(const Json& json) {
    Object o(json, "$.kernel");
    ir::Kernel k;
    k.name = o.text("name");
    if (o.has("doc")) k.doc = o.text("doc");
    k.params = params(o);
    if (o.has("launch")) k.launch = launch(o.at("launch"));
    k.body = statements(o, "body");
    if (o.has("functions")) {
      const Json& list = o.array("functions");
      for (size_t i = 0; i < list.size(); ++i) {
        Object f(list[i], fmt::format("$.kernel.functions[{}]", i));
        ir::Function function;
        function.name = f.text("name");
        function.params = params(f);
        if (f.has("result")) function.result = f.type("result");
        function.body = statements(f, "body");
        f.done();
        k.functions.push_back(std::move(function));
      }
    }
    o.done();
    return k;
  }

  ir::Launch launch(const Json& json) {
    Object o(json, "$.kernel.launch");
    ir::Launch l;
    l.threads = expressions(o, "threads");
    const Json& block = o.array("block");
    if (block.size() != 3) o.fail("'block' has three numbers");
    for (size_t i = 0; i < 3; ++i) {
      if (!block[i].is_number_unsigned() || block[i].get<uint64_t>() > 1024)
        o.fail("'block' has three numbers from 1 to 1024");
      l.block[i] = block[i].get<uint32_t>();
    }
    o.done();
    return l;
  }

  std::vector<ir::Param> params(Object& parent) {
    std::vector<ir::Param> out;
    const Json& list = parent.array("params");
    for (size_t i = 0; i < list.size(); ++i) {
      Object o(list[i], parent.place("params") + fmt::format("[{}]", i));
      ir::Param p;
      p.name = o.text("name");
      Object t(o.at("type"), o.place("type"));
      const std::string kind = t.text("kind");
      if (kind == "scalar") {
        p.type = t.type("type");
      } else if (kind == "device_array") {
        p.type = t.type("element_type");
        p.rank = 1;
        if (t.has("rank")) p.rank = static_cast<uint32_t>(t.count("rank", ir::kMaximumRank));
        if (p.rank == 0) t.fail("an array has at least one dimension");
      } else {
        t.fail(
            fmt::format("there is no kind of type '{}'; there is scalar and device_array", kind));
      }
      t.done();
      o.done();
      out.push_back(std::move(p));
    }
    return out;
  }

  std::vector<Expr> expressions(Object& parent, const char* field) {
    std::vector<Expr> out;
    const Json& list = parent.array(field);
    for (size_t i = 0; i < list.size(); ++i)
      out.push_back(expression(list[i], parent.place(field) + fmt::format("[{}]", i)));
    return out;
  }

  Expr expression(Object& parent, const char* field) {
    return expression(parent.at(field), parent.place(field));
  }

  Expr expression(const Json& json, std::string path) {
    Object o(json, std::move(path));
    Deeper deeper(*this, o);
    const std::string kind = o.text("kind");
    Expr e;
    if (kind == "literal") {
      literal(o, e);
    } else if (kind == "var") {
      e.kind = Expr::Kind::var;
      e.name = o.text("name");
    } else if (kind == "binary_op") {
      e.kind = Expr::Kind::binary_op;
      const std::string op = o.text("op");
      const auto code = ir::binary_op_from_name(op);
      if (!code) o.fail(fmt::format("there is no binary operator '{}'", op));
      e.binary = *code;
      e.args.push_back(expression(o, "left"));
      e.args.push_back(expression(o, "right"));
    } else if (kind == "unary_op") {
      e.kind = Expr::Kind::unary_op;
      const std::string op = o.text("op");
      const auto code = ir::unary_op_from_name(op);
      if (!code) o.fail(fmt::format("there is no unary operator '{}'", op));
      e.unary = *code;
      e.args.push_back(expression(o, "value"));
    } else if (kind == "cast") {
      e.kind = Expr::Kind::cast;
      e.type = o.type("type");
      e.args.push_back(expression(o, "value"));
    } else if (kind == "index") {
      e.kind = Expr::Kind::index;
      e.name = o.text("array");
      e.args = expressions(o, "indices");
    } else if (kind == "call") {
      e.kind = Expr::Kind::call;
      e.name = o.text("function");
      e.args = expressions(o, "args");
    } else if (kind == "if_expr") {
      e.kind = Expr::Kind::if_expr;
      for (const char* field : {"condition", "then", "else"})
        e.args.push_back(expression(o, field));
    } else if (kind == "shape") {
      e.kind = Expr::Kind::shape;
      e.name = o.text("array");
      e.integer = o.count("axis", ir::kMaximumRank);
    } else {
      o.fail(fmt::format(
          "there is no expression '{}'; there is literal, var, binary_op, unary_op, cast, index, "
          "call, if_expr and shape",
          kind));
    }
    o.done();
    return e;
  }

  static void literal(Object& o, Expr& e) {
    e.type = o.type("type");
    const Json& v = o.at("value");
    if (*e.type == DType::boolean) {
      if (!v.is_boolean()) o.fail("the value of a bool is true or false");
      e.integer = v.get<bool>();
    } else if (is_float(*e.type)) {
      const std::string text = v.is_string() ? v.get<std::string>() : "";
      if (v.is_number())
        e.number = v.get<double>();
      else if (text == "inf" || text == "-inf")
        e.number = text[0] == '-' ? -INFINITY : INFINITY;
      else if (text == "nan")
        e.number = std::numeric_limits<double>::quiet_NaN();
      else
        o.fail("the value of a float is a number, \"inf\", \"-inf\" or \"nan\"");
    } else {
      if (!v.is_number_integer()) o.fail("the value of an integer is an integer");
      if (is_unsigned_integer(*e.type) && !v.is_number_unsigned())
        o.fail(fmt::format("{} does not fit {}", v.get<int64_t>(), name_of(*e.type)));
      if (is_signed_integer(*e.type) && v.is_number_unsigned() &&
          v.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        o.fail(fmt::format("{} does not fit {}", v.get<uint64_t>(), name_of(*e.type)));
      e.integer =
          v.is_number_unsigned() ? v.get<uint64_t>() : static_cast<uint64_t>(v.get<int64_t>());
    }
  }

  std::vector<Stmt> statements(Object& parent, const char* field) {
    std::vector<Stmt> out;
    const Json& list = parent.array(field);
    for (size_t i = 0; i < list.size(); ++i)
      out.push_back(statement(list[i], parent.place(field) + fmt::format("[{}]", i)));
    return out;
  }

  Stmt statement(const Json& json, std::string path) {
    Object o(json, std::move(path));
    Deeper deeper(*this, o);
    const std::string kind = o.text("kind");
    Stmt s;
    const auto arrays = [&](std::initializer_list<const char*> fields) {
      for (const char* field : fields) s.arrays.push_back(o.text(field));
      s.values.push_back(expression(o, "count"));
    };
    if (kind == "let") {
      s.name = o.text("name");
      s.type = o.type("type");
      if (o.has("value")) s.values.push_back(expression(o, "value"));
    } else if (kind == "shared") {
      s.kind = Stmt::Kind::shared;
      s.name = o.text("name");
      s.type = o.type("element_type");
      for (const Json& n : o.array("shape")) {
        if (!n.is_number_unsigned() || n.get<uint64_t>() > (1u << 20))
          o.fail("'shape' holds numbers from 1 to 1048576");
        s.extents.push_back(n.get<uint32_t>());
      }
    } else if (kind == "assign") {
      s.kind = Stmt::Kind::assign;
      s.target = expression(o, "target");
      s.values.push_back(expression(o, "value"));
    } else if (kind == "if") {
      s.kind = Stmt::Kind::if_;
      s.values.push_back(expression(o, "condition"));
      s.body = statements(o, "then");
      if (o.has("else")) s.orelse = statements(o, "else");
    } else if (kind == "for") {
      s.kind = Stmt::Kind::for_;
      s.name = o.text("var");
      s.type = o.type("type");
      for (const char* field : {"start", "stop", "step"}) s.values.push_back(expression(o, field));
      s.body = statements(o, "body");
    } else if (kind == "while") {
      s.kind = Stmt::Kind::while_;
      s.values.push_back(expression(o, "condition"));
      s.body = statements(o, "body");
    } else if (kind == "break") {
      s.kind = Stmt::Kind::break_;
    } else if (kind == "continue") {
      s.kind = Stmt::Kind::continue_;
    } else if (kind == "return") {
      s.kind = Stmt::Kind::return_;
      if (o.has("value")) s.values.push_back(expression(o, "value"));
    } else if (kind == "expression") {
      s.kind = Stmt::Kind::expression;
      s.values.push_back(expression(o, "value"));
    } else if (kind == "barrier") {
      s.kind = Stmt::Kind::barrier;
    } else if (kind == "fence") {
      s.kind = Stmt::Kind::fence;
    } else if (kind == "parallel_map_unary") {
      s.kind = Stmt::Kind::parallel_map_unary;
      s.function = o.text("function");
      arrays({"input", "output"});
    } else if (kind == "parallel_map_binary") {
      s.kind = Stmt::Kind::parallel_map_binary;
      s.function = o.text("function");
      arrays({"left", "right", "output"});
    } else if (kind == "parallel_reduce") {
      s.kind = Stmt::Kind::parallel_reduce;
      s.function = o.text("op");
      arrays({"input", "output"});
    } else {
      o.fail(fmt::format(
          "there is no statement '{}'; there is let, shared, assign, if, for, while, break, "
          "continue, return, expression, barrier, fence, parallel_map_unary, parallel_map_binary "
          "and parallel_reduce",
          kind));
    }
    if (o.has("line")) {
      s.line = static_cast<uint32_t>(o.count("line", 1u << 30));
      s.column = static_cast<uint32_t>(o.count("column", 1u << 30));
    }
    o.done();
    return s;
  }

  int depth_ = 0;
};

// Like Json::parse, but names the place of a field that is given twice, which JSON's own rules
// leave open, and never goes deeper than a document can.
Json parse(std::string_view text) {
  // Deep enough for every expression and statement of kMaximumDepth: an object and an array each.
  constexpr int kDeepest = 2 * kMaximumDepth + 20;
  std::vector<std::set<std::string>> open;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) throw BadJson{"$: nested too deeply"};
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
      throw BadJson{fmt::format("the field '{}' is given twice", parsed.get<std::string>())};
    return true;
  };
  return Json::parse(text, check);
}

}  // namespace

Result<ir::Kernel> read_json(std::string_view text) {
  ir::Kernel kernel;
  try {
    kernel = Reader().document(parse(text));
  } catch (const BadJson& bad) {
    return fail(ErrorCode::parse_error, "JSON IR: {}", bad.message);
  } catch (const Json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    std::string_view what = e.what();
    if (const size_t at = what.find("] "); at != what.npos) what.remove_prefix(at + 2);
    return fail(ErrorCode::parse_error, "JSON IR: {}", what);
  }
  HOLOGRAM_CHECK(validate(kernel, "JSON IR: $.kernel"));
  return kernel;
}

}  // namespace hologram::lang
