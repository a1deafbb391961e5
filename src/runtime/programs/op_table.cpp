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
  std::string name(info(op).name);
  if (variant == Variant::vs) name += "_vs";
  if (variant == Variant::sv) name += "_sv";
  return name + "_" + std::string(name_of(type));
}

}  // namespace hologram::runtime
