#include "lang/intrinsics.h"

#include <algorithm>

namespace hologram::lang {
namespace {

using enum IntrinsicKind;
using isa::Opcode;

constexpr Intrinsic kIntrinsics[] = {
    {"exp", math, Opcode::exp, 1},
    {"exp2", math, Opcode::exp2, 1},
    {"expm1", math, Opcode::expm1, 1},
    {"log", math, Opcode::log, 1},
    {"log1p", math, Opcode::log1p, 1},
    {"log2", math, Opcode::log2, 1},
    {"log10", math, Opcode::log10, 1},
    {"sqrt", math, Opcode::sqrt, 1},
    {"rsqrt", math, Opcode::rsqrt, 1},
    {"sin", math, Opcode::sin, 1},
    {"cos", math, Opcode::cos, 1},
    {"tan", math, Opcode::tan, 1},
    {"asin", math, Opcode::asin, 1},
    {"acos", math, Opcode::acos, 1},
    {"atan", math, Opcode::atan, 1},
    {"sinh", math, Opcode::sinh, 1},
    {"cosh", math, Opcode::cosh, 1},
    {"tanh", math, Opcode::tanh, 1},
    {"asinh", math, Opcode::asinh, 1},
    {"acosh", math, Opcode::acosh, 1},
    {"atanh", math, Opcode::atanh, 1},
    {"sigmoid", math, Opcode::sigmoid, 1},
    {"erf", math, Opcode::erf, 1},
    {"floor", math, Opcode::floor, 1},
    {"ceil", math, Opcode::ceil, 1},
    {"trunc", math, Opcode::trunc, 1},
    {"round", math, Opcode::round, 1},
    {"pow", math, Opcode::pow, 2},
    {"fmod", math, Opcode::rem, 2},
    {"fma", math, Opcode::fma, 3},
    {"min", number, Opcode::min, 2},
    {"max", number, Opcode::max, 2},
    {"abs", number, Opcode::abs, 1},
    {"class_of", class_byte, Opcode::class_of, 1},
    {"class_mirror", class_byte, Opcode::class_mirror, 1},
    {"class_neighbour", class_byte, Opcode::class_neighbour, 2},
    {"get_global_id", id, Opcode::global_id, 1},
    {"get_local_id", id, Opcode::thread_id, 1},
    {"get_group_id", id, Opcode::block_id, 1},
    {"get_local_size", id, Opcode::block_size, 1},
    {"get_num_groups", id, Opcode::grid_size, 1},
    // No instruction of its own: groups times their size.
    {"get_global_size", id, Opcode::imm, 1},
    {"atomic_add", atomic, Opcode::atomic_add, 1},
    {"atomic_min", atomic, Opcode::atomic_min, 1},
    {"atomic_max", atomic, Opcode::atomic_max, 1},
    {"atomic_exchange", atomic, Opcode::atomic_exchange, 1},
    {"atomic_cas", atomic_cas, Opcode::atomic_cas, 2},
    {"group_add", group, Opcode::group_add, 1},
    {"group_mul", group, Opcode::group_mul, 1},
    {"group_min", group, Opcode::group_min, 1},
    {"group_max", group, Opcode::group_max, 1},
};

}  // namespace

const Intrinsic* find_intrinsic(std::string_view name) {
  const auto* found = std::ranges::find(kIntrinsics, name, &Intrinsic::name);
  return found == std::end(kIntrinsics) ? nullptr : found;
}

std::span<const Intrinsic> intrinsics() { return kIntrinsics; }

}  // namespace hologram::lang
