#include "runtime/programs/op_programs.h"

#include <algorithm>

#include "lang/lower.h"
#include "lang/variant.h"
#include "runtime/programs/integer_ops.h"

namespace hologram::runtime {
namespace {

Result<isa::Program> from_library(const lang::ir::Kernel& source, ElementwiseOp op, Variant variant,
                                  DType type) {
  HOLOGRAM_TRY(lang::ir::Kernel kernel, lang::retype(source, type, result_type(op, type)));
  if (variant != Variant::flat) {
    std::vector<std::string> staying;
    if (variant == Variant::rows_vs) staying.push_back(source.params[1].name);
    if (variant == Variant::rows_sv) staying.push_back(source.params[0].name);
    HOLOGRAM_TRY(kernel, lang::by_rows(std::move(kernel), staying));
  }
  kernel.name = program_name(op, variant, type);
  return lang::lower(kernel);
}

}  // namespace

Result<std::vector<isa::Program>> build_op_programs(std::span<const lang::ir::Kernel> library) {
  std::vector<isa::Program> programs;
  for (size_t op = 0; op < kElementwiseOpCount; ++op)
    for (size_t variant = 0; variant < kVariants; ++variant)
      for (uint8_t code = 0; code <= static_cast<uint8_t>(DType::f64); ++code) {
        const auto which = static_cast<ElementwiseOp>(op);
        const auto how = static_cast<Variant>(variant);
        const auto type = static_cast<DType>(code);
        if (!has_program(which, how, type)) continue;
        const auto source = std::ranges::find(library, info(which).kernel, &lang::ir::Kernel::name);
        if (source == library.end())
          return fail(ErrorCode::not_found, "the library has no kernel '{}', which op '{}' is",
                      info(which).kernel, info(which).name);
        if (how == Variant::flat && type == DType::f32) continue;  // the library's kernel itself
        auto program = is_integer_op(which, type) ? build_integer_op(which, how, type)
                                                  : from_library(*source, which, how, type);
        HOLOGRAM_TRY(isa::Program made, in_context(std::move(program),
                                                   [&] { return program_name(which, how, type); }));
        programs.push_back(std::move(made));
      }
  return programs;
}

}  // namespace hologram::runtime
