#include <cmath>
#include <nlohmann/json.hpp>

#include "lang/json/json.h"

namespace hologram::lang {
namespace {

using Json = nlohmann::ordered_json;
using ir::Expr;
using ir::Stmt;

Json expression(const Expr& e);

Json list(const std::vector<Expr>& expressions) {
  Json array = Json::array();
  for (const Expr& e : expressions) array.push_back(expression(e));
  return array;
}

Json number(double value) {
  if (std::isnan(value)) return "nan";  // JSON has no such numbers
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json expression(const Expr& e) {
  switch (e.kind) {
    case Expr::Kind::literal: {
      Json j = {{"kind", "literal"}, {"type", name_of(*e.type)}};
      if (*e.type == DType::boolean)
        j["value"] = e.integer != 0;
      else if (is_float(*e.type))
        j["value"] = number(e.number);
      else if (is_signed_integer(*e.type))
        j["value"] = static_cast<int64_t>(e.integer);
      else
        j["value"] = e.integer;
      return j;
    }
    case Expr::Kind::var:
      return {{"kind", "var"}, {"name", e.name}};
    case Expr::Kind::binary_op:
      return {{"kind", "binary_op"},
              {"op", name_of(e.binary)},
              {"left", expression(e.args[0])},
              {"right", expression(e.args[1])}};
    case Expr::Kind::unary_op:
      return {{"kind", "unary_op"}, {"op", name_of(e.unary)}, {"value", expression(e.args[0])}};
    case Expr::Kind::cast:
      return {{"kind", "cast"}, {"type", name_of(*e.type)}, {"value", expression(e.args[0])}};
    case Expr::Kind::index:
      return {{"kind", "index"}, {"array", e.name}, {"indices", list(e.args)}};
    case Expr::Kind::call:
      return {{"kind", "call"}, {"function", e.name}, {"args", list(e.args)}};
    case Expr::Kind::if_expr:
      return {{"kind", "if_expr"},
              {"condition", expression(e.args[0])},
              {"then", expression(e.args[1])},
              {"else", expression(e.args[2])}};
    case Expr::Kind::shape:
      return {{"kind", "shape"}, {"array", e.name}, {"axis", e.integer}};
  }
  return nullptr;
}

Json statements(const std::vector<Stmt>& body);

Json statement_fields(const Stmt& s) {
  switch (s.kind) {
    case Stmt::Kind::let: {
      Json j = {{"kind", "let"}, {"name", s.name}, {"type", name_of(s.type)}};
      if (!s.values.empty()) j["value"] = expression(s.values[0]);
      return j;
    }
    case Stmt::Kind::shared:
      return {{"kind", "shared"},
              {"name", s.name},
              {"element_type", name_of(s.type)},
              {"shape", s.extents}};
    case Stmt::Kind::assign:
      return {
          {"kind", "assign"}, {"target", expression(s.target)}, {"value", expression(s.values[0])}};
    case Stmt::Kind::if_: {
      Json j = {
          {"kind", "if"}, {"condition", expression(s.values[0])}, {"then", statements(s.body)}};
      if (!s.orelse.empty()) j["else"] = statements(s.orelse);
      return j;
    }
    case Stmt::Kind::for_:
      return {{"kind", "for"},
              {"var", s.name},
              {"type", name_of(s.type)},
              {"start", expression(s.values[0])},
              {"stop", expression(s.values[1])},
              {"step", expression(s.values[2])},
              {"body", statements(s.body)}};
    case Stmt::Kind::while_:
      return {
          {"kind", "while"}, {"condition", expression(s.values[0])}, {"body", statements(s.body)}};
    case Stmt::Kind::break_:
      return {{"kind", "break"}};
    case Stmt::Kind::continue_:
      return {{"kind", "continue"}};
    case Stmt::Kind::return_: {
      Json j = {{"kind", "return"}};
      if (!s.values.empty()) j["value"] = expression(s.values[0]);
      return j;
    }
    case Stmt::Kind::expression:
      return {{"kind", "expression"}, {"value", expression(s.values[0])}};
    case Stmt::Kind::barrier:
      return {{"kind", "barrier"}};
    case Stmt::Kind::fence:
      return {{"kind", "fence"}};
    case Stmt::Kind::parallel_map_unary:
      return {{"kind", "parallel_map_unary"},
              {"function", s.function},
              {"input", s.arrays[0]},
              {"output", s.arrays[1]},
              {"count", expression(s.values[0])}};
    case Stmt::Kind::parallel_map_binary:
      return {{"kind", "parallel_map_binary"}, {"function", s.function},
              {"left", s.arrays[0]},           {"right", s.arrays[1]},
              {"output", s.arrays[2]},         {"count", expression(s.values[0])}};
    case Stmt::Kind::parallel_reduce:
      return {{"kind", "parallel_reduce"},
              {"op", s.function},
              {"input", s.arrays[0]},
              {"output", s.arrays[1]},
              {"count", expression(s.values[0])}};
  }
  return nullptr;
}

Json statements(const std::vector<Stmt>& body) {
  Json array = Json::array();
  for (const Stmt& s : body) {
    Json j = statement_fields(s);
    if (s.line != 0) {
      j["line"] = s.line;
      j["column"] = s.column;
    }
    array.push_back(std::move(j));
  }
  return array;
}

Json params(const std::vector<ir::Param>& list) {
  Json array = Json::array();
  for (const ir::Param& p : list) {
    Json type;
    if (p.is_array()) {
      type = {{"kind", "device_array"}, {"element_type", name_of(p.type)}};
      if (p.rank != 1) type["rank"] = p.rank;
    } else {
      type = {{"kind", "scalar"}, {"type", name_of(p.type)}};
    }
    array.push_back({{"name", p.name}, {"type", std::move(type)}});
  }
  return array;
}

}  // namespace

std::string write_json(const ir::Kernel& kernel) {
  Json k = {{"name", kernel.name}};
  if (!kernel.doc.empty()) k["doc"] = kernel.doc;
  k["params"] = params(kernel.params);
  if (kernel.launch)
    k["launch"] = {{"threads", list(kernel.launch->threads)}, {"block", kernel.launch->block}};
  k["body"] = statements(kernel.body);
  if (!kernel.functions.empty()) {
    Json functions = Json::array();
    for (const ir::Function& f : kernel.functions) {
      Json j = {{"name", f.name}, {"params", params(f.params)}};
      if (f.result) j["result"] = name_of(*f.result);
      j["body"] = statements(f.body);
      functions.push_back(std::move(j));
    }
    k["functions"] = std::move(functions);
  }
  const Json document = {{"version", ir::kVersion}, {"kernel", std::move(k)}};
  // A doc string may hold any bytes; what is not UTF-8 becomes a replacement character.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hologram::lang
