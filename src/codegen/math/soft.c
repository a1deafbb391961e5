// Exact routines for what x86 has no instruction for. Compiled to LLVM bitcode by clang when
// Hologram is built and linked into generated code; see soft.h. Nothing here may call anything.
#include <stdint.h>

static uint64_t bits_of(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, 8);
  return bits;
}
static double from_bits(uint64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, 8);
  return x;
}

#define SIGN 0x8000000000000000u
#define INFINITE 0x7ff0000000000000u
#define IMPLICIT 0x0010000000000000u

// The significand with its leading bit at bit 52, and the exponent of bit 0 plus 1074.
static uint64_t significand(uint64_t magnitude, int* exponent) {
  int e = (int)(magnitude >> 52);
  uint64_t m = magnitude & (IMPLICIT - 1);
  if (e == 0) {
    const int shift = __builtin_clzll(m) - 11;
    m <<= shift;
    e = 1 - shift;
  } else {
    m |= IMPLICIT;
  }
  *exponent = e - 1;
  return m;
}

// C's fmod: exact. Eleven bits of the quotient a turn.
double hologram_fmod(double x, double y) {
  const uint64_t sign = bits_of(x) & SIGN;
  const uint64_t a = bits_of(x) ^ sign;
  const uint64_t b = bits_of(y) & ~SIGN;
  if (a >= INFINITE || b > INFINITE || b == 0) return (x * y) / (x * y);
  if (a < b) return x;
  int ea, eb;
  uint64_t m = significand(a, &ea);
  const uint64_t n = significand(b, &eb);
  int distance = ea - eb;
  m %= n;
  while (distance > 0 && m != 0) {
    const int step = distance < 11 ? distance : 11;
    m = (m << step) % n;
    distance -= step;
  }
  if (m == 0) return from_bits(sign);
  // Back to a double with exponent eb: normalise, or stay subnormal.
  const int up = __builtin_clzll(m) - 11;
  const int e = eb - up;
  if (e >= 0) return from_bits(sign | ((uint64_t)(e + 1) << 52) | ((m << up) & (IMPLICIT - 1)));
  // A subnormal divisor was scaled up; the remainder is a multiple of that scale.
  return from_bits(sign | (eb >= 0 ? m << eb : m >> -eb));
}

typedef unsigned __int128 u128;

// The fused multiply-add: a * b + c rounded once.
double hologram_fma(double a, double b, double c) {
  const uint64_t ua = bits_of(a) & ~SIGN, ub = bits_of(b) & ~SIGN, uc = bits_of(c) & ~SIGN;
  // The product must not overflow on its way to an infinite addend.
  if (ua < INFINITE && ub < INFINITE && uc >= INFINITE) return c + c;
  // Not finite, or a product of zero: nothing to round, or one rounding as it is.
  if (ua >= INFINITE || ub >= INFINITE || uc >= INFINITE || ua == 0 || ub == 0) return a * b + c;
  const uint64_t product_sign = (bits_of(a) ^ bits_of(b)) & SIGN;
  uint64_t sign = product_sign;
  int ea, eb, ec = 0;
  // The product with its leading bit at bit 124 or 125: two bits above are free for a carry.
  u128 p = (u128)significand(ua, &ea) * significand(ub, &eb) << 20;
  int e = ea + eb - 1074 - 20;  // of bit 0, plus 1074
  if (uc != 0) {
    // The addend with its leading bit at bit 124.
    u128 q = (u128)significand(uc, &ec) << 72;
    ec -= 72;
    uint64_t addend_sign = bits_of(c) & SIGN;
    if (ec > e || (ec == e && q > p)) {
      const u128 t = p;
      p = q;
      q = t;
      const int te = e;
      e = ec;
      ec = te;
      const uint64_t ts = sign;
      sign = addend_sign;
      addend_sign = ts;
    }
    // Align the smaller; what is shifted out stays as a sticky last bit.
    const int shift = e - ec;
    if (shift >= 127)
      q = 1;
    else if (shift > 0)
      q = (q >> shift) | ((q << (128 - shift)) != 0);
    if (sign == addend_sign)
      p += q;
    else if (p >= q)
      p -= q;
    else {
      p = q - p;
      sign = addend_sign;
    }
    if (p == 0) return 0.0;  // exact cancellation: +0, as rounding to nearest has it
  }
  // Normalise to 53 bits plus the rest, then round to nearest even.
  const int leading = (uint64_t)(p >> 64) != 0 ? __builtin_clzll((uint64_t)(p >> 64))
                                               : 64 + __builtin_clzll((uint64_t)p);
  p <<= leading;  // leading bit at 127
  e -= leading;
  int cut = 75;               // bits below the last of 53
  if (e + cut < 0) cut = -e;  // subnormal: fewer bits stay
  if (cut > 127) {
    // Below half of the smallest number, or (cut 128) at or just above it.
    const int up = cut == 128 && p > ((u128)1 << 127);
    return from_bits(sign | (uint64_t)up);
  }
  uint64_t m = (uint64_t)(p >> cut);
  const u128 below = p << (128 - cut);
  const u128 half = (u128)1 << 127;
  if (below > half || (below == half && (m & 1))) ++m;
  // m may have carried into the next exponent; adding it to the exponent field is right either way.
  const int exponent = e + cut;
  if (exponent >= 2046) return from_bits(sign | INFINITE);
  return from_bits(sign + ((uint64_t)exponent << 52) + m);
}

// 64 zeros, then the bits of 2/pi behind the point.
static const uint64_t kTwoOverPi[21] = {
    0x0000000000000000u, 0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u,
    0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu,
    0xe88235f52ebb4484u, 0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu,
    0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du,
    0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu,
    0xf0cfbc209af4361du,
};

// A large x (2^20 <= |x|, finite) as quarter turns plus an angle of at most pi/4 (Payne, Hanek).
typedef struct {
  double angle;
  double error;  // what `angle` lacks
  double quarters;
} Turn;

static Turn turn_of(double x) {
  int e;
  const uint64_t m = significand(bits_of(x) & ~SIGN, &e);
  e -= 1074;  // |x| = m * 2^e, e >= -32
  // Of x * 2/pi only the part modulo 4 matters. The bits of 2/pi before the 192 taken here give
  // multiples of 4, those behind less than 2^-137.
  const int first = e + 62, word = first / 64, shift = first % 64;
  uint64_t f[3];
  for (int i = 0; i < 3; ++i)
    f[i] = shift ? kTwoOverPi[word + i] << shift | kTwoOverPi[word + i + 1] >> (64 - shift)
                 : kTwoOverPi[word + i];
  // The product modulo 2^192: two bits of quarter turns, then 190 behind the point.
  const u128 low = (u128)m * f[2];
  const u128 middle = (u128)m * f[1] + (uint64_t)(low >> 64);
  const uint64_t high = m * f[0] + (uint64_t)(middle >> 64);
  int quarters = (int)(high >> 62);
  const u128 p = (u128)high << 64 | (uint64_t)middle;
  const u128 fraction = p << 2 | (uint64_t)low >> 62;
  // To the nearest quarter turn: the fraction becomes signed.
  const int64_t top = (int64_t)(fraction >> 64);
  if (top < 0) ++quarters;
  const long double angle =
      ((long double)top * 0x1p-64L + (long double)(uint64_t)fraction * 0x1p-128L) *
      1.57079632679489661923132169163975144L;
  const int negative = (bits_of(x) & SIGN) != 0;
  Turn turn;
  turn.angle = (double)angle;
  turn.error = (double)(angle - (long double)turn.angle);
  turn.quarters = (double)(quarters & 3);
  if (negative) {
    turn.angle = -turn.angle;
    turn.error = -turn.error;
    turn.quarters = -turn.quarters;
  }
  return turn;
}

double hologram_turn_angle(double x) { return turn_of(x).angle; }
double hologram_turn_error(double x) { return turn_of(x).error; }
double hologram_turn_quarters(double x) { return turn_of(x).quarters; }
