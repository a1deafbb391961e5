// Texts the assembler must refuse: with which code, where, and in which words.
#include <gtest/gtest.h>

#include "isa/text.h"

namespace hologram::isa {
namespace {

struct Refused {
  const char* text;
  ErrorCode code;
  const char* message;  // begins with line:column
};

constexpr ErrorCode kParse = ErrorCode::parse_error;
constexpr ErrorCode kVerify = ErrorCode::verify_error;

const Refused kRefused[] = {
    // the frame
    {"", kParse, "1:1: expected 'kernel', found the end of the text"},
    {"; nothing but a comment\n\n", kParse, "3:1: expected 'kernel', found the end of the text"},
    {"function f()\nend\n", kParse, "1:1: expected 'kernel', found 'function'"},
    {"kernel 7()\nend\n", kParse, "1:8: expected the kernel's name, found '7'"},
    {"kernel k\nend\n", kParse, "1:9: expected '(', found the end of the line"},
    {"kernel k() fence\nend\n", kParse, "1:12: expected the end of the line, found 'fence'"},
    {"kernel k()\n", kParse, "2:1: expected an instruction or 'end', found the end of the text"},
    {"kernel k()\nend\nend\n", kParse, "3:1: expected the end of the text, found 'end'"},
    {"kernel k()\n  fence fence\nend\n", kParse,
     "2:9: expected the end of the line, found 'fence'"},
    {"kernel k()\n  \x01\nend\n", kParse,
     "2:3: expected an instruction or 'end', found the byte 0x01"},
    {"kernel k()\n  @\nend\n", kParse, "2:3: expected an instruction or 'end', found '@'"},

    // declarations
    {"kernel k(x)\nend\n", kParse, "1:11: expected ':', found ')'"},
    {"kernel k(x: i24)\nend\n", kParse,
     "1:13: expected a type (bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32 or f64), "
     "found 'i24'"},
    {"kernel k(x: f8e4m3fn)\nend\n", kParse,
     "1:13: expected a type (bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32 or f64), "
     "found 'f8e4m3fn'"},
    {"kernel k(x: f32[])\nend\n", kParse,
     "1:16: say what the array is for: 'x: read f32[]', write or read_write"},
    {"kernel k(x: read f32)\nend\n", kParse, "1:21: expected '[', found ')'"},
    {"kernel k(x: read f32[4])\nend\n", kParse, "1:22: expected ']', found '4'"},
    {"kernel k(x: f32 y: f32)\nend\n", kParse, "1:17: expected ',', found 'y'"},
    {"kernel k(x: f32, x: i8)\nend\n", kParse, "1:18: 'x' is declared twice"},
    {"kernel k(x: f32)\n  shared x: f32[4]\nend\n", kParse, "2:10: 'x' is declared twice"},
    {"kernel k()\n  shared s: f32[0]\nend\n", kParse,
     "2:17: expected a number of elements from 1, or nothing, found '0'"},
    {"kernel k()\n  shared s: f32[99999999999]\nend\n", kParse,
     "2:17: expected a number of elements from 1, or nothing, found '99999999999'"},
    {"kernel k()\n  shared s: f32[300000]\nend\n", kVerify,
     "1:8: shared array 's': more than 1048576 shared bytes"},
    {"kernel k()\n  shared s: f32[]\n  shared t: f32[1]\nend\n", kVerify,
     "1:8: shared array 's': only the last may be dynamic (without a count)"},
    {"kernel k()\n  fence\n  shared s: f32[4]\nend\n", kParse,
     "3:3: declarations come before the first instruction"},
    {"kernel k()\n  register %a: f32\n  register %a: f32\nend\n", kParse,
     "3:12: %a is declared twice"},
    {"kernel k()\n  register 5: f32\nend\n", kParse, "2:12: expected a register"},
    {"kernel k()\n  %2 = imm.f32 1.0\nend\n", kParse,
     "2:3: there is %2 but no %0: number registers without gaps, or declare it as 'register %0: "
     "type'"},
    {"kernel k()\n  %99999 = imm.f32 1.0\nend\n", kParse,
     "2:3: register numbers go from 0 to 65535, found %99999"},
    {"kernel k()\n  %00 = imm.f32 1.0\nend\n", kParse,
     "2:3: register numbers have no leading zeros, found %00"},

    // operations and constants
    {"kernel k()\n  %a = frobnicate.f32 %b\nend\n", kParse,
     "2:8: there is no operation 'frobnicate'"},
    {"kernel k()\n  %a = imm.f31 1\nend\n", kParse,
     "2:12: expected a type (bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32 or f64), "
     "found 'f31'"},
    {"kernel k()\n  %a = imm 1\nend\n", kParse,
     "2:8: the type is missing: write 'imm.f32', for instance"},
    {"kernel k()\n  %a = imm.i8 128\nend\n", kParse,
     "2:15: expected an integer from -128 to 127, found '128'"},
    {"kernel k()\n  %a = imm.u16 -1\nend\n", kParse,
     "2:16: expected an integer from 0 to 65535, found '-1'"},
    {"kernel k()\n  %a = imm.bool 1\nend\n", kParse, "2:17: expected true or false, found '1'"},
    {"kernel k()\n  %a = imm.f32 1.5.2\nend\n", kParse,
     "2:16: expected a number, inf, nan or the bits of a f32 as 0x..., found '1.5.2'"},
    {"kernel k()\n  %a = imm.f16 0x12345\nend\n", kParse,
     "2:16: expected the 16 bits of a f16, found '0x12345'"},
    {"kernel k()\n  %a = thread_id.w\nend\n", kParse,
     "2:8: expected an axis: thread_id.x, thread_id.y or thread_id.z"},
    {"kernel k()\n  %a = thread_id.x.f32\nend\n", kParse, "2:8: 'thread_id' does not work on f32"},
    {"kernel k()\n  imm.f32 1.0\nend\n", kParse,
     "2:3: 'imm' gives a result: write '%name = imm ...'"},
    {"kernel k()\n  %a = barrier\nend\n", kParse, "2:8: 'barrier' gives no result to assign"},
    {"kernel k()\n  barrier.f32\nend\n", kParse, "2:11: 'barrier' is written without a type"},
    {"kernel k()\n  %a = imm.f32 1.0\n  %b = imm.f32 %a\nend\n", kParse,
     "3:16: expected a constant, found %a; to copy a register use mov"},
    {"kernel k()\n  %a = convert.f32 1\nend\n", kParse,
     "2:20: expected a register, found '1'; for a constant use imm"},

    // types
    {"kernel k()\n  %a = add.f32 %b, 1.0\nend\n", kParse,
     "2:16: %b is not assigned yet; assign it first, or declare it as 'register %b: type'"},
    {"kernel k()\n  %a = imm.i32 1\n  %b = add.f32 %a, %a\nend\n", kParse,
     "3:16: %a is i32, expected f32"},
    {"kernel k()\n  %a = imm.i32 1\n  %a = imm.f32 1.0\nend\n", kParse,
     "3:3: %a is i32, but 'imm.f32' gives f32"},
    {"kernel k()\n  %a = imm.f32 1.0\n  %b = and %a, %a\nend\n", kParse,
     "3:8: 'and' does not work on f32"},
    {"kernel k()\n  %a = imm.i32 1\n  %b = exp %a\nend\n", kParse,
     "3:8: 'exp' does not work on i32"},
    {"kernel k()\n  %a = imm.i32 1\n  if %a\n  end\nend\n", kParse,
     "3:6: %a is i32, expected bool"},
    {"kernel k()\n  %a = imm.i32 1\n  %b = bitcast.f64 %a\nend\n", kVerify,
     "3:8: bitcast: i32 and f64 do not have the same bits; use convert"},

    // parameters and shared arrays
    {"kernel k()\n  %a = load x[0]\nend\n", kParse, "2:13: there is no parameter 'x'"},
    {"kernel k(x: f32)\n  %a = load x[0]\nend\n", kVerify,
     "2:8: load: 'x' is a scalar, expected an array"},
    {"kernel k(x: read f32[])\n  %a = param x\nend\n", kVerify,
     "2:8: param: 'x' is an array; load from it"},
    {"kernel k(x: read f32[])\n  store x[0], 1.0\nend\n", kVerify, "2:3: store: 'x' is read-only"},
    {"kernel k(x: write f32[])\n  %a = load x[0]\nend\n", kVerify, "2:8: load: 'x' is write-only"},
    {"kernel k(x: write i32[])\n  %a = atomic_add x[0], 1\nend\n", kVerify,
     "2:8: atomic_add: 'x' is write-only"},
    {"kernel k(x: read_write f32[])\n  %a = atomic_cas x[0], 1.0, 2.0\nend\n", kVerify,
     "2:8: atomic_cas: does not work on f32"},
    {"kernel k(x: read f32[])\n  %a = imm.f32 0.0\n  %b = load x[%a]\nend\n", kParse,
     "3:15: %a is f32, expected an integer"},
    {"kernel k(x: read f32[])\n  %a = load_shared x[0]\nend\n", kParse,
     "2:20: 'x' is a parameter, expected a shared array"},
    {"kernel k()\n  shared s: f32[4]\n  %a = load s[0]\nend\n", kParse,
     "3:13: 's' is a shared array, expected a parameter"},
    {"kernel k()\n  shared s: f32[4]\n  store_shared s[0] 1.0\nend\n", kParse,
     "3:21: expected ',', found '1.0'"},

    // control flow
    {"kernel k()\n  else\nend\n", kVerify, "2:3: else: without an if"},
    {"kernel k()\n  if true\n  else\n  else\n  end\nend\n", kVerify,
     "4:3: else: the if at 1 has an else already"},
    {"kernel k()\n  loop\nend\n", kParse,
     "4:1: expected an instruction or 'end', found the end of the text"},
    {"kernel k()\n  break\nend\n", kVerify, "2:3: break: outside a for or loop"},
    {"kernel k()\n  if true\n    continue\n  end\nend\n", kVerify,
     "3:5: continue: outside a for or loop"},
    {"kernel k()\n  return\n  fence\nend\n", kVerify,
     "3:3: fence: can never run: it follows a return"},
    {"kernel k()\n  for %i = 0 to\nend\n", kParse,
     "2:16: expected a register or a constant, found the end of the line"},
    {"kernel k()\n  for %i = 0 to 3\n  end\nend\n", kParse,
     "2:3: the type is missing: write 'for.f32', for instance"},
    {"kernel k()\n  for.i32 %i = 0 to 3\n    %i = imm.i32 1\n  end\nend\n", kVerify,
     "3:10: imm: assigns %i, the counter of a for around it"},
    {"kernel k()\n  register %x: i32\n  if true\n    %x = imm.i32 1\n  end\n  %y = neg %x\nend\n",
     kVerify, "6:8: neg: %x may be read before it is assigned"},
    {"kernel k()\n  for.i32 %i = 0 to 3\n  end\n  %y = neg %i\nend\n", kVerify,
     "4:8: neg: %i may be read before it is assigned"},
    {"kernel k()\n  %t = thread_id.x\n  %c = lt %t, 3\n  if %c\n    barrier\n  end\nend\n", kVerify,
     "5:5: barrier: not all threads of a block may get here: it stands in or after control flow "
     "that depends on the thread"},
    {"kernel k()\n  %t = global_id.x\n  %c = lt %t, 3\n  if %c\n    return\n  end\n"
     "  %s = group_add %t\nend\n",
     kVerify,
     "7:8: group_add: not all threads of a block may get here: it stands in or after control flow "
     "that depends on the thread"},
};

TEST(IsaTextError, EachIsRefusedAtItsPlace) {
  for (const Refused& refused : kRefused) {
    const auto program = assemble(refused.text);
    ASSERT_FALSE(program) << refused.text;
    EXPECT_EQ(program.error().message(), refused.message) << refused.text;
    EXPECT_EQ(program.error().code(), refused.code) << refused.text;
  }
}

TEST(IsaTextError, TooDeepNesting) {
  std::string text = "kernel k()\n";
  for (int i = 0; i < 65; ++i) text += "loop\n";
  for (int i = 0; i < 65; ++i) text += "end\n";
  const auto program = assemble(text + "end\n");
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), ErrorCode::verify_error);
  EXPECT_EQ(program.error().message(), "66:1: loop: more than 64 regions inside each other");
}

TEST(IsaTextError, TooLongNames) {
  const auto program = assemble("kernel " + std::string(300, 'k') + "()\nend\n");
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().message(), "1:8: a name has at most 255 characters");
}

}  // namespace
}  // namespace hologram::isa
