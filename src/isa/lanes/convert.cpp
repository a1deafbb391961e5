#include "isa/lanes/apply.h"

namespace hologram::isa {

LaneKernel convert_kernel(DType to, DType from) {
  return with_type(to, [from]<typename To>() {
    return with_type(from, []<typename From>() -> LaneKernel {
      return unary_kernel<To, From, scalar::convert<To, From>>;
    });
  });
}

}  // namespace hologram::isa
