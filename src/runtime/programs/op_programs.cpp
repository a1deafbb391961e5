#include "runtime/programs/op_programs.h"

#include <algorithm>

#include "lang/lower.h"
#include "lang/variant.h"
#include "runtime/programs/integer_ops.h"
#include "runtime/programs/row_table.h"

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

using Library = std::span<const lang::ir::Kernel>;

constexpr uint8_t kTypes = static_cast<uint8_t>(DType::f64) + 1;

Result<const lang::ir::Kernel*> find(Library library, std::string_view kernel) {
  const auto found = std::ranges::find(library, kernel, &lang::ir::Kernel::name);
  if (found != library.end()) return &*found;
  return fail(ErrorCode::not_found, "the library has no kernel '{}', which an op is", kernel);
}

Status add(std::vector<isa::Program>& programs, Result<isa::Program> made,
           const std::string& name) {
  HOLOGRAM_TRY(isa::Program program, in_context(std::move(made), [&] { return name; }));
  programs.push_back(std::move(program));
  return {};
}

Status add_elementwise(std::vector<isa::Program>& programs, Library library, ElementwiseOp op) {
  HOLOGRAM_TRY(const lang::ir::Kernel* source, find(library, info(op).kernel));
  for (size_t v = 0; v < kVariants; ++v)
    for (uint8_t code = 0; code < kTypes; ++code) {
      const auto variant = static_cast<Variant>(v);
      const auto type = static_cast<DType>(code);
      if (!has_program(op, variant, type)) continue;
      if (variant == Variant::flat && type == DType::f32) continue;  // the library's kernel itself
      HOLOGRAM_CHECK(add(programs,
                         is_integer_op(op, type) ? build_integer_op(op, variant, type)
                                                 : from_library(*source, op, variant, type),
                         program_name(op, variant, type)));
    }
  return {};
}

Result<isa::Program> row_program(const lang::ir::Kernel& source, RowOp op, DType element,
                                 DType result) {
  HOLOGRAM_TRY(lang::ir::Kernel kernel,
               lang::retype(source, element, result, row_arithmetic(element, result)));
  HOLOGRAM_TRY(kernel, lang::by_rows(std::move(kernel), {}));
  kernel.name = row_program_name(op, element, result);
  return lang::lower(kernel);
}

Status add_rows(std::vector<isa::Program>& programs, Library library, RowOp op) {
  HOLOGRAM_TRY(const lang::ir::Kernel* source, find(library, info(op).kernel));
  for (uint8_t from = 0; from < kTypes; ++from)
    for (uint8_t to = 0; to < kTypes; ++to) {
      const auto element = static_cast<DType>(from), result = static_cast<DType>(to);
      if (!has_row_program(op, element, result)) continue;
      HOLOGRAM_CHECK(add(programs, row_program(*source, op, element, result),
                         row_program_name(op, element, result)));
    }
  return {};
}

Result<isa::Program> matrix_program(const lang::ir::Kernel& source, MatrixOp op, DType type) {
  HOLOGRAM_TRY(lang::ir::Kernel kernel, lang::retype(source, type, type));
  kernel.name = matrix_program_name(op, type);
  return lang::lower(kernel);
}

Status add_products(std::vector<isa::Program>& programs, Library library, MatrixOp op) {
  HOLOGRAM_TRY(const lang::ir::Kernel* source,
               find(library, kMatrixKernels[static_cast<size_t>(op)]));
  for (uint8_t code = 0; code < kTypes; ++code) {
    const auto type = static_cast<DType>(code);
    // Those of f32 are the library's gemv_f32, and a built-in kernel (ops/linalg.h says why).
    if (!contains(TypeSet::numbers, type) || type == DType::f32) continue;
    HOLOGRAM_CHECK(add(programs, matrix_program(*source, op, type), matrix_program_name(op, type)));
  }
  return {};
}

}  // namespace

Result<std::vector<isa::Program>> build_op_programs(std::span<const lang::ir::Kernel> library) {
  std::vector<isa::Program> programs;
  for (size_t op = 0; op < kElementwiseOpCount; ++op)
    HOLOGRAM_CHECK(add_elementwise(programs, library, static_cast<ElementwiseOp>(op)));
  for (size_t op = 0; op < kRowOpCount; ++op)
    HOLOGRAM_CHECK(add_rows(programs, library, static_cast<RowOp>(op)));
  for (size_t op = 0; op < kMatrixOpCount; ++op)
    HOLOGRAM_CHECK(add_products(programs, library, static_cast<MatrixOp>(op)));
  return programs;
}

}  // namespace hologram::runtime
