#!/usr/bin/env python3
"""Computes the coefficients of the mathematical functions (needs mpmath).

Each polynomial is the near-minimax (Chebyshev) fit of one smooth function; what is printed goes
into coefficients.h. Rerun after changing a degree or an interval: ./fit.py > coefficients.h
"""
import struct

from mpmath import (asin, atan, chebyfit, cos, erf, erfc, exp, inf, log, mp, mpf, pi, sin, sqrt,
                    taylor, tanh)

mp.prec = 400


def single(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def hexadecimal(x, is_f32):
    return float.hex(single(x) if is_f32 else float(x))


def near_zero(f, series, limit=mpf(2) ** -12):
    """f away from 0, its series (a list of coefficients) near it."""
    def g(x):
        x = mpf(x)
        if abs(x) > limit:
            return f(x)
        total = mpf(0)
        for c in reversed(series):
            total = total * x + c
        return total
    return g


def table(name, comment, function, interval, count, is_f32):
    low_first = list(reversed(chebyfit(function, interval, count)))
    numbers = ", ".join(hexadecimal(c, is_f32) for c in low_first)
    print(f"// {comment}\ninline constexpr double {name}[] = {{{numbers}}};")


def split(name, value, bits, parts):
    """value as a sum of doubles, all but the last with few bits, so that products are exact."""
    rest, numbers = mpf(value), []
    for _ in range(parts - 1):
        e = mp.floor(mp.log(abs(rest), 2))
        unit = mpf(2) ** (e - bits + 1)
        part = mp.floor(rest / unit) * unit
        numbers.append(part)
        rest -= part
    numbers.append(rest)
    text = ", ".join(float.hex(float(n)) for n in numbers)
    print(f"inline constexpr double {name}[] = {{{text}}};")


def odd_series(f, count):
    """Coefficients in z = x * x of (f(x) - x) / x^3 for an odd f with f'(0) = 1."""
    t = taylor(f, 0, 2 * count + 3)
    return [t[2 * k + 3] for k in range(count)]


def cubic(f):
    """(f(x) - x) / x^3 as a function of z = x * x."""
    return near_zero(lambda z: (f(sqrt(z)) - sqrt(z)) / (z * sqrt(z)), odd_series(f, 12))


print("// Written by fit.py: the coefficients of the mathematical functions, lowest power first.")
print("#pragma once\n\nnamespace hologram::codegen::math {\n\n// clang-format off")
half_ln2 = log(2) / 2 * mpf("1.0001")
exp_rest = near_zero(lambda r: (exp(r) - 1 - r) / r**2, taylor(exp, 0, 20)[2:])
table("kExpF32", "(exp(r) - 1 - r) / r^2, |r| <= ln(2)/2", exp_rest, [-half_ln2, half_ln2], 5, True)
table("kExpF64", "the same", exp_rest, [-half_ln2, half_ln2], 10, False)

log_series = taylor(lambda f: log(1 + f), 0, 30)
log_rest = near_zero(lambda f: (log(1 + f) - f + f * f / 2) / f**3, log_series[3:])
table("kLogF32", "(log(1+f) - f + f^2/2) / f^3, sqrt(1/2) <= 1+f <= sqrt(2)", log_rest,
      [sqrt(mpf(1) / 2) - 1, sqrt(2) - 1], 9, True)
# log((1+s)/(1-s)) = 2s + s * R(s*s)
atanh2 = lambda s: log((1 + s) / (1 - s))
s_max = (sqrt(2) - 1) / (sqrt(2) + 1)
log_r = near_zero(lambda z: (atanh2(sqrt(z)) - 2 * sqrt(z)) / (sqrt(z) * z),
                  [mpf(2) / (2 * k + 3) for k in range(14)])
table("kLogF64", "(log((1+s)/(1-s)) - 2s) / s^3 in s^2", log_r, [0, s_max**2], 8, False)
log_r2 = near_zero(lambda z: (atanh2(sqrt(z)) - 2 * sqrt(z) - 2 * z * sqrt(z) / 3) / (sqrt(z) * z**2),
                   [mpf(2) / (2 * k + 5) for k in range(14)])
table("kPowLogF64", "(log((1+s)/(1-s)) - 2s - 2s^3/3) / s^5 in s^2", log_r2, [0, s_max**2], 9, False)

table("kTanhF32", "(tanh(x) - x) / x^3 in x^2, |x| <= 0.625", cubic(tanh), [0, mpf("0.625")**2], 5, True)
erf_slope = near_zero(lambda z: erf(sqrt(z)) / sqrt(z), [taylor(erf, 0, 40)[2 * k + 1] for k in range(18)])
table("kErfSmallF32", "erf(x)/x - 1 in x^2, |x| <= 1", lambda z: erf_slope(z) - 1, [0, 1], 7, True)
table("kErfSmallF64", "erf(x)/x in x^2, |x| <= 1", lambda z: erf_slope(z), [0, 1], 15, False)
table("kErfLargeF32", "-log(erfc(t)) / t, 1 <= t <= 4", lambda t: -log(erfc(t)) / t, [mpf("0.99"), mpf("4.0")], 8, True)
# erfc(t) = exp(-t*t) * Q(u), u = (t - 2.4) / (t + 2.4)
erf_t = lambda u: mpf("2.4") * (1 + u) / (1 - u)
erf_u = lambda t: (mpf(t) - mpf("2.4")) / (mpf(t) + mpf("2.4"))
table("kErfLargeF64", "erfc(t) * exp(t*t) in u = (t - 2.4) / (t + 2.4), 1 <= t <= 6",
      lambda u: erfc(erf_t(u)) * exp(erf_t(u) ** 2), [erf_u(mpf("0.99")), erf_u(mpf("6.1"))], 17, False)

quarter = (pi / 4 * mpf("1.0001"))**2
table("kSinF32", "(sin(r) - r) / r^3 in r^2, |r| <= pi/4", cubic(sin), [0, quarter], 4, True)
table("kSinF64", "the same", cubic(sin), [0, quarter], 7, False)
cos_series = [taylor(cos, 0, 40)[2 * k + 4] for k in range(16)]
cos_rest = near_zero(lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, cos_series)
table("kCosF32", "(cos(r) - 1 + r^2/2) / r^4 in r^2", cos_rest, [0, quarter], 4, True)
table("kCosF64", "the same", cos_rest, [0, quarter], 7, False)
tan_eighth = (sqrt(2) - 1) * mpf("1.0001")
table("kAtanF64", "(atan(t) - t) / t^3 in t^2, |t| <= tan(pi/8)", cubic(atan), [0, tan_eighth**2], 13, False)

print("\n// Constants in parts: products of all but the last with small integers are exact.")
split("kLn2F32", log(2), 12, 2)
split("kLn2F64", log(2), 36, 2)
split("kHalfPi", pi / 2, 32, 4)
split("kLog10Of2", log(2) / log(10), 36, 2)
split("kLog2E", 1 / log(2), 53, 2)
print(f"inline constexpr double kLn2 = {float.hex(float(log(2)))};")
print(f"inline constexpr double kLog10E = {float.hex(float(1 / log(10)))};")
print(f"inline constexpr double kPi = {float.hex(float(pi))};")
print("// clang-format on\n\n}  // namespace hologram::codegen::math")
