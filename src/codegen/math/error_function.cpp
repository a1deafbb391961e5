// erf: x P(x^2) up to 1, and 1 minus what is left of it beyond.
#include "codegen/math/coefficients.h"
#include "codegen/math/number.h"

namespace hologram::codegen::math {

Number erf(Number x) {
  const Number a = abs(x);
  const Number z = x * x;
  if (x.is_f32()) {
    const Number small = mad(polynomial(z, kErfSmallF32), x, x);
    const Number t = at_most(a, 4.0);
    const Number large = 1.0 - exp_normal(-(polynomial(t, kErfLargeF32) * t));
    return select(a < 1.0, small, select(is_nan(x), x, with_sign_of(large, x)));
  }
  const Number small = polynomial(z, kErfSmallF64) * x;
  const Number t = at_most(a, 6.0);
  const Number u = (t - 2.4) / (t + 2.4);
  // exp(-t*t) with what the square lost.
  const Pair square = exact_product(t, t);
  const Number gauss = exp_normal(-square.value) * (1.0 - square.error);
  const Number large = 1.0 - gauss * polynomial(u, kErfLargeF64);
  return select(a < 1.0, small, select(is_nan(x), x, with_sign_of(large, x)));
}

}  // namespace hologram::codegen::math
