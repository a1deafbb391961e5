#include "runtime/programs/op_table.h"

namespace hologram::runtime {

std::string_view describe(TypeSet set) {
  switch (set) {
    case TypeSet::numbers:
      return "i8..i64, u8..u64, f16, bf16, f32, f64";
    case TypeSet::signed_numbers:
      return "i8..i64, f16, bf16, f32, f64";
    case TypeSet::floats:
      return "f16, bf16, f32, f64";
    case TypeSet::words:
      return "u8, u16, u32, u64";
  }
  return "";
}

std::string program_name(ElementwiseOp op, Variant variant, DType type) {
  constexpr std::string_view kForms[] = {"", "_rows", "_rows_vs", "_rows_sv"};
  std::string name(info(op).kernel);
  if (variant == Variant::flat && type == DType::f32) return name;
  name += kForms[static_cast<size_t>(variant)];
  return name + "_" + std::string(name_of(type));
}

}  // namespace hologram::runtime
