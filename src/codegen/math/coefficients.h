// Written by fit.py: the coefficients of the mathematical functions, lowest power first.
#pragma once

namespace hologram::codegen::math {

// clang-format off
// (exp(r) - 1 - r) / r^2, |r| <= ln(2)/2
inline constexpr double kExpF32[] = {0x1.0000000000000p-1, 0x1.5554dc0000000p-3, 0x1.55551a0000000p-5, 0x1.120b6e0000000p-7, 0x1.6d110a0000000p-10};
// the same
inline constexpr double kExpF64[] = {0x1.0000000000001p-1, 0x1.5555555555556p-3, 0x1.5555555553d63p-5, 0x1.11111111109b3p-7, 0x1.6c16c1788bd90p-10, 0x1.a01a01a7c41d5p-13, 0x1.a019b90d2ae7ap-16, 0x1.71de0dae63bb3p-19, 0x1.289185613a3d6p-22, 0x1.af38a9b0ec855p-26};
// (log(1+f) - f + f^2/2) / f^3, sqrt(1/2) <= 1+f <= sqrt(2)
inline constexpr double kLogF32[] = {0x1.5555540000000p-2, -0x1.fffffc0000000p-3, 0x1.999d5a0000000p-3, -0x1.555b4a0000000p-3, 0x1.23d21a0000000p-3, -0x1.fcf4c60000000p-4, 0x1.dea2820000000p-4, -0x1.d635bc0000000p-4, 0x1.1d8ea60000000p-4};
// (log((1+s)/(1-s)) - 2s) / s^3 in s^2
inline constexpr double kLogF64[] = {0x1.5555555555555p-1, 0x1.9999999999a38p-2, 0x1.2492492476cccp-2, 0x1.c71c720159177p-3, 0x1.745cf9048dd95p-3, 0x1.3b1c355a8f7a2p-3, 0x1.0fbe95d716020p-3, 0x1.0c039c49989c6p-3};
// (log((1+s)/(1-s)) - 2s - 2s^3/3) / s^5 in s^2
inline constexpr double kPowLogF64[] = {0x1.999999999999ap-2, 0x1.2492492492491p-2, 0x1.c71c71c71cfd7p-3, 0x1.745d17451376fp-3, 0x1.3b13b1bc64d9dp-3, 0x1.1110dfb2433c1p-3, 0x1.e1f7f8b33879dp-4, 0x1.ac4ab12e9f860p-4, 0x1.b8d2ce0baf5e8p-4};
// (tanh(x) - x) / x^3 in x^2, |x| <= 0.625
inline constexpr double kTanhF32[] = {-0x1.5555520000000p-2, 0x1.110e1c0000000p-3, -0x1.b9258a0000000p-5, 0x1.58048e0000000p-6, -0x1.8f8de40000000p-8};
// erf(x)/x - 1 in x^2, |x| <= 1
inline constexpr double kErfSmallF32[] = {0x1.06eba80000000p-3, -0x1.81273e0000000p-2, 0x1.ce2d100000000p-4, -0x1.b7faba0000000p-6, 0x1.5412700000000p-8, -0x1.a450880000000p-11, 0x1.4a56900000000p-14};
// erf(x)/x in x^2, |x| <= 1
inline constexpr double kErfSmallF64[] = {0x1.20dd750429b6dp+0, -0x1.812746b0379e7p-2, 0x1.ce2f21a042be2p-4, -0x1.b82ce31288b47p-6, 0x1.565bcd0e6a2eep-8, -0x1.c02db40035f1ep-11, 0x1.f9a326f7ac5b1p-14, -0x1.f4d25bf9af03ap-17, 0x1.b9e6c38e5cf3dp-20, -0x1.5f73c3bf14b91p-23, 0x1.fcbb312b48443p-27, -0x1.517ce02f1265fp-30, 0x1.9a0fcb5e22c5bp-34, -0x1.b40e7abf9f000p-38, 0x1.3c01fd3a74542p-42};
// -log(erfc(t)) / t, 1 <= t <= 4
inline constexpr double kErfLargeF32[] = {0x1.2102e80000000p+0, 0x1.449ab00000000p-1, 0x1.baa1400000000p-4, -0x1.9e54f80000000p-6, 0x1.1e1de00000000p-8, -0x1.0d61440000000p-11, 0x1.30db120000000p-15, -0x1.355b4a0000000p-20};
// erfc(t) * exp(t*t) in u = (t - 2.4) / (t + 2.4), 1 <= t <= 6
inline constexpr double kErfLargeF64[] = {0x1.bf7c43b86e7a2p-3, -0x1.872d68a71dfa1p-2, 0x1.017dbaafb495fp-2, -0x1.e233f781e4e18p-4, 0x1.0c0d0be58941fp-5, -0x1.651296af262f2p-11, -0x1.85c9a4d7bacd6p-9, 0x1.f79c6e3d04b27p-12, 0x1.698212a6b8746p-12, -0x1.2cf013d760389p-14, -0x1.d52e20c6065bdp-15, 0x1.ce401aa103435p-18, 0x1.6949b46a44d53p-17, 0x1.2054b51886a9ep-21, -0x1.0cb3798c37ec2p-19, -0x1.ec50499695607p-22, 0x1.33a6200b76fcep-22};
// (sin(r) - r) / r^3 in r^2, |r| <= pi/4
inline constexpr double kSinF32[] = {-0x1.5555560000000p-3, 0x1.11110e0000000p-7, -0x1.a013a60000000p-13, 0x1.6dbdd20000000p-19};
// the same
inline constexpr double kSinF64[] = {-0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a019936p-13, 0x1.71de3a54605eep-19, -0x1.ae64541266378p-26, 0x1.61217ec01749dp-33, -0x1.ab17a79237a19p-41};
// (cos(r) - 1 + r^2/2) / r^4 in r^2
inline constexpr double kCosF32[] = {0x1.5555560000000p-5, -0x1.6c16c00000000p-10, 0x1.a015c40000000p-16, -0x1.25242a0000000p-22};
// the same
inline constexpr double kCosF64[] = {0x1.5555555555555p-5, -0x1.6c16c16c16c16p-10, 0x1.a01a01a019d0ap-16, -0x1.27e4fb7712bdfp-22, 0x1.1eed8deb6d561p-29, -0x1.9394b9c9c20a4p-37, 0x1.ab783376962cfp-45};
// (atan(t) - t) / t^3 in t^2, |t| <= tan(pi/8)
inline constexpr double kAtanF64[] = {-0x1.5555555555555p-2, 0x1.9999999999997p-3, -0x1.24924924920abp-3, 0x1.c71c71c6dda2ap-4, -0x1.745d17355e46cp-4, 0x1.3b13aea8f96a5p-4, -0x1.1110ced35773cp-4, 0x1.e1d8e764fea3fp-5, -0x1.aebd08d228857p-5, 0x1.829c5163243c7p-5, -0x1.5039f76dd5e72p-5, 0x1.f5e4cb8024a47p-6, -0x1.c7fcfe2d9f022p-7};

// Constants in parts: products of all but the last with small integers are exact.
inline constexpr double kLn2F32[] = {0x1.62e0000000000p-1, 0x1.0bfbe8e7bcd5ep-15};
inline constexpr double kLn2F64[] = {0x1.62e42fefa0000p-1, 0x1.cf79abc9e3b3ap-40};
inline constexpr double kHalfPi[] = {0x1.921fb54400000p+0, 0x1.0b4611a600000p-34, 0x1.3198a2e000000p-69, 0x1.b839a252049c1p-104};
inline constexpr double kLog10Of2[] = {0x1.34413509e0000p-2, 0x1.79fef311f12b3p-38};
inline constexpr double kLog2E[] = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;
inline constexpr double kLog10E = 0x1.bcb7b1526e50ep-2;
inline constexpr double kPi = 0x1.921fb54442d18p+1;
// clang-format on

}  // namespace hologram::codegen::math
