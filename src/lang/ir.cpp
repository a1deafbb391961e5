#include "lang/ir.h"

#include <iterator>

namespace hologram::lang::ir {
namespace {

constexpr std::string_view kBinaryNames[] = {
    "add",    "sub",     "mul", "div", "floor_div", "mod", "pow", "shl", "shr", "bit_and",
    "bit_or", "bit_xor", "eq",  "ne",  "lt",        "le",  "gt",  "ge",  "and", "or"};
constexpr std::string_view kUnaryNames[] = {"neg", "bit_not", "not"};

}  // namespace

std::string_view name_of(BinaryOp op) { return kBinaryNames[static_cast<size_t>(op)]; }
std::string_view name_of(UnaryOp op) { return kUnaryNames[static_cast<size_t>(op)]; }

std::optional<BinaryOp> binary_op_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(kBinaryNames); ++i)
    if (kBinaryNames[i] == name) return static_cast<BinaryOp>(i);
  return std::nullopt;
}

std::optional<UnaryOp> unary_op_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(kUnaryNames); ++i)
    if (kUnaryNames[i] == name) return static_cast<UnaryOp>(i);
  return std::nullopt;
}

}  // namespace hologram::lang::ir
