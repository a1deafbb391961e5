// Kernel sources that must be rejected: where, in which words, and that nothing else is said.
#include <gtest/gtest.h>

#include <string>

#include "lang/checker.h"
#include "lang/compile.h"
#include "lang/parser.h"

namespace hologram::lang {
namespace {

struct Rejected {
  const char* source;
  uint32_t line, column;
  const char* message;  // the whole of it
};

// Lines of a kernel's body; its head is line 1.
constexpr const char* kHead =
    "def f(a: DeviceArray[f32], b: DeviceArray[i32], m: DeviceArray[f32, 2], n: u32, s: f32, k: "
    "i32, "
    "c: bool):\n";

const Rejected kBodies[] = {
    // Python that is not part of the language, by name.
    {"    class A:\n        pass\n", 2, 5, "classes are not supported"},
    {"    x = lambda y: y\n", 2, 9, "lambda is not supported"},
    {"    try:\n        a[0] = 1.0\n    except:\n        pass\n", 2, 5, "try is not supported"},
    {"    with c:\n        a[0] = 1.0\n", 2, 5, "with is not supported"},
    {"    import math\n", 2, 5, "import inside a function is not supported"},
    {"    from math import exp\n", 2, 5, "import inside a function is not supported"},
    {"    x = [1, 2]\n", 2, 9, "lists are not supported"},
    {"    x = [i for i in range(3)]\n", 2, 9, "list comprehensions are not supported"},
    {"    x = {1: 2}\n", 2, 9, "dictionaries and sets are not supported"},
    {"    x = (1, 2)\n", 2, 11, "tuples are not supported"},
    {"    x = max(i for i in range(3))\n", 2, 15, "comprehensions are not supported"},
    {"    x = (i for i in range(3))\n", 2, 12, "generator expressions are not supported"},
    {"    x = 'text'\n", 2, 9, "strings are not supported except as doc strings"},
    {"    x = f'{n}'\n", 2, 9, "f-strings are not supported"},
    {"    x = a[0:2]\n", 2, 12, "slices are not supported"},
    {"    x = a[:]\n", 2, 11, "slices are not supported"},
    {"    global n\n", 2, 5, "global is not supported"},
    {"    nonlocal n\n", 2, 5, "nonlocal is not supported"},
    {"    yield n\n", 2, 5, "yield is not supported"},
    {"    x = yield\n", 2, 9, "yield is not supported"},
    {"    async def g():\n        pass\n", 2, 5, "async is not supported"},
    {"    x = await n\n", 2, 9, "await is not supported"},
    {"    if (x := n) > 1:\n        pass\n", 2, 11, "the walrus operator := is not supported"},
    {"    match n:\n        case 1:\n            pass\n", 2, 5, "match is not supported"},
    {"    del n\n", 2, 5, "del is not supported"},
    {"    assert c\n", 2, 5, "assert is not supported"},
    {"    raise n\n", 2, 5, "raise is not supported"},
    {"    def g():\n        pass\n", 2, 5, "a function inside a function is not supported"},
    {"    x = None\n", 2, 9, "None is not supported"},
    {"    x = n is k\n", 2, 11, "the operator is is not supported"},
    {"    x = n in b\n", 2, 11, "the operator in is not supported"},
    {"    x = a @ a\n", 2, 11, "the matrix product @ is not supported"},
    {"    x = 1j\n", 2, 9, "complex numbers are not supported"},
    {"    x, y = 1, 2\n", 2, 6, "tuple assignment is not supported"},
    {"    x = y = 1\n", 2, 11, "chained assignment is not supported"},
    {"    x = max(*b)\n", 2, 13, "unpacking with * is not supported"},
    {"    x = min(a=1, b=2)\n", 2, 13, "keyword arguments are not supported"},
    {"    x = a.sum()\n", 2, 9, "methods such as .sum() are not supported"},
    {"    x = a.size\n", 2, 9, "the attribute .size is not supported"},
    {"    for i in b:\n        pass\n", 2, 14, "a for loop runs over range(...) only"},
    {"    for i, j in range(3):\n        pass\n", 2, 10, "a for loop has one variable"},
    {"    for i in range(3):\n        pass\n    else:\n        pass\n", 4, 5,
     "else after a loop is not supported"},
    {"    ...\n", 2, 5, "... is not supported"},
    {"    print(n)\n", 2, 5, "print() is not supported"},
    {"    x = 3\n    'late'\n", 3, 5, "a doc string must be the first line of its function"},
    // Text that follows no grammar.
    {"    x = \n", 2, 9, "expected an expression, found the end of the line"},
    {"    x = (n + 1\n    y = 2\n", 3, 5, "expected ')' in a parenthesis, found 'y'"},
    {"    if c\n        pass\n", 2, 9, "expected ':' in 'if', found the end of the line"},
    {"    if c:\n    x = 1\n", 3, 5, "the block of 'if' is missing"},
    {"        x = 1\n      y = 2\n", 3, 7, "this indentation matches no enclosing block"},
    {"    x = 1\n        y = 2\n", 3, 9, "this line is indented but opens no block"},
    {"\tx = 1\n        y = 2\n", 3, 9, "tabs and spaces are mixed: this line's level is not clear"},
    {"    x = n && k\n", 2, 12, "expected an expression, found '&'"},
    {"    x = n || k\n", 2, 12, "expected an expression, found '|'"},
    {"    x = !c\n", 2, 9, "unexpected character '!'"},
    {"    x = 1\n    x++\n", 3, 8, "expected an expression, found the end of the line"},
    {"    x = c ? 1 : 2\n", 2, 11, "unexpected character '?'"},
    {"    x = 017\n", 2, 9, "'017' is not a number"},
    {"    x = 3u\n", 2, 10, "'u' cannot follow a number"},
    {"    x = n $ 2\n", 2, 11, "unexpected character '$'"},
    {"    x = n ? 2\n", 2, 11, "unexpected character '?'"},
    {"    x = \"open\n", 2, 9, "this string is not closed"},
    {"    1 = x\n", 2, 5, "only a variable or an array's element can be assigned"},
    {"    else:\n        pass\n", 2, 5, "'else' without an if above it"},
    {"    x = 99999999999999999999999\n", 2, 9, "99999999999999999999999 is past 64 bits"},
    // Names.
    {"    x = y\n", 2, 9, "'y' is not defined"},
    {"    x = sqroot(s)\n", 2, 9, "there is no function 'sqroot'"},
    {"    x = sqrt\n", 2, 9, "'sqrt' is a function"},
    {"    x = f32\n", 2, 9, "'f32' is a type"},
    {"    x = n(1)\n", 2, 9, "'n' is a variable, not a function"},
    {"    if c:\n        x = 1\n    b[0] = x\n", 4, 12, "'x' may have no value here"},
    {"    for i in range(3):\n        x = i\n    b[0] = x\n", 4, 12, "'x' may have no value here"},
    {"    x += 1\n", 2, 5, "'x' is not defined"},
    {"    min = 3\n", 2, 5, "'min' is already a function of the language"},
    {"    f = 3\n", 2, 5, "'f' is already a function of this file"},
    {"    f(a, b, m, n, s, k, c)\n", 2, 5,
     "'f' is a kernel and cannot be called from another function"},
    // Types.
    {"    x = len(a) + k\n", 2, 16, "u64 and i32 do not mix: no type holds both"},
    {"    x: u32 = n + k\n", 2, 14, "'x' is u32, this is i64"},
    {"    x = s + c\n", 2, 13, "+ takes numbers, this is bool"},
    {"    x = c < c\n", 2, 9, "< takes numbers, this is bool"},
    {"    x = a + 1\n", 2, 9, "+ takes numbers, this is a whole array"},
    {"    x = s & 1\n", 2, 11, "& takes integers, these are f32"},
    {"    x = s << 1\n", 2, 11, "<< takes integers, this is f32"},
    {"    x = ~s\n", 2, 9, "~ takes integers, this is f32"},
    {"    x = ~c\n", 2, 9, "~ of a bool is a number in Python"},
    {"    x = -n\n", 2, 9, "u32 has no negative values"},
    {"    x = k ** k\n", 2, 11, "an integer to a power of i32 could need a fraction"},
    {"    x = k // 0\n", 2, 11, "division by zero"},
    {"    x = k << -1\n", 2, 11, "a shift by a negative number"},
    {"    x = u8(1) + 300\n", 2, 17, "300 does not fit u8"},
    {"    x = 3000000000\n", 2, 9, "3000000000 does not fit i32"},
    {"    x: u8 = 256\n", 2, 13, "256 does not fit u8"},
    {"    x: i32 = 1.5\n", 2, 14, "'x' is i32, a literal 1.5 is not"},
    {"    x: i32 = s\n", 2, 14, "'x' is i32, this is f32"},
    {"    x = 1\n    x = s\n", 3, 9, "'x' is i32, this is f32"},
    {"    if c:\n        x = s\n    else:\n        x = 0\n", 5, 13,
     "'x' is f32 since line 3, this is i32"},
    {"    x = s\n    x: f32 = 1.0\n", 3, 5, "'x' got its type on line 2 already"},
    {"    x: f32 = 1.0\n    x: i32 = 1\n", 3, 5, "'x' is f32 since line 2"},
    {"    x: str = 1\n", 2, 8, "there is no type 'str'"},
    {"    x: f8e4m3fn = 1\n", 2, 8, "f8e4m3fn is for storage only: kernels do not compute in it"},
    {"    b[0] = s\n", 2, 12, "an element of 'b' is i32, this is f32"},
    {"    if n:\n        pass\n", 2, 8, "if takes a bool, this is u32"},
    {"    while 1:\n        pass\n", 2, 11, "while takes a bool, this is an integer literal"},
    {"    x = n and c\n", 2, 9, "and takes a bool, this is u32"},
    {"    x = not s\n", 2, 13, "not takes a bool, this is f32"},
    {"    x = s if c else k\n", 2, 9, "the branches are f32 and i32"},
    {"    x = 1 if c else 2.0\n", 2, 9, "the branches are an integer literal and a float literal"},
    {"    for i in range(s):\n        pass\n", 2, 20, "range() takes integers, this is f32"},
    {"    for i in range(0, n, -1):\n        pass\n", 2, 26, "-1 does not fit u32"},
    {"    for i in range(0, 5, 0):\n        pass\n", 2, 26, "the step of range() is zero"},
    {"    for i in range(len(a), k):\n        pass\n", 2, 28,
     "u64 and i32 do not mix: no type holds both"},
    // Arrays.
    {"    x = a[s]\n", 2, 11, "an index is an integer, this is f32"},
    {"    x = a[-1]\n", 2, 11, "a negative index does not count from the end"},
    {"    x = a[1, 2]\n", 2, 9, "'a' has 1 dimension, not 2"},
    {"    x = m[1]\n", 2, 9, "'m' has 2 dimensions, not 1"},
    {"    x = m[1][2]\n", 2, 9, "an index after an index is not supported"},
    {"    x = n[0]\n", 2, 9, "'n' is u32, not an array"},
    {"    x = m.shape[2]\n", 2, 17, "the axis is a literal from 0 to 1"},
    {"    x = m.shape\n", 2, 9, ".shape needs an axis"},
    {"    a = b\n", 2, 5, "'a' is an array and cannot be assigned as a whole"},
    {"    x = a\n", 2, 5, "an array cannot be assigned to a variable"},
    {"    x: DeviceArray[f32] = a\n", 2, 8, "only a parameter can be a DeviceArray"},
    // Calls.
    {"    x = sqrt(s, s)\n", 2, 9, "sqrt() takes 1 argument, not 2"},
    {"    x = sqrtf(f64(s))\n", 2, 15, "the argument of sqrtf() is f32, this is f64"},
    {"    x = get_global_id(3)\n", 2, 23, "the axis is the literal 0, 1 or 2"},
    {"    x = range(3)\n", 2, 9, "range() belongs into a for loop"},
    {"    x = barrier()\n", 2, 9, "barrier() gives no value"},
    {"    atomic_cas(a, 0, 1.0, 2.0)\n", 2, 5, "atomic_cas() does not work on f32"},
    {"    atomic_add(n, 0, 1)\n", 2, 16, "a whole array is expected here"},
    {"    x = c and group_add(s) > 0.0\n", 2, 15,
     "group_add() must be reached by every thread of the block"},
    {"    s + 1\n", 2, 5, "this expression's value is not used"},
    {"    if c:\n        t = shared(f32, 4)\n", 3, 13,
     "shared() belongs to the kernel's own level, not into a helper, if or loop"},
    {"    t = shared(f32, n)\n", 2, 21,
     "the size of shared memory is a literal or a constant, at least 1"},
    {"    x = 1\n    launch(n)\n", 3, 5, "launch() stands at the top of a kernel"},
    {"    launch(a[0])\n", 2, 12,
     "launch() takes integers made of scalar parameters, shapes and constants"},
    {"    block(4096)\n", 2, 11, "the size of a block is a literal or a constant from 1 to 1024"},
    {"    parallel_map(sqrt, a, b, n)\n", 2, 18, "'sqrt' does not map these arrays"},
    {"    parallel_reduce(sub, a, a, n)\n", 2, 21,
     "the first argument of parallel_reduce() is add, mul, min or max"},
    // Flow.
    {"    break\n", 2, 5, "'break' outside a loop"},
    {"    continue\n", 2, 5, "'continue' outside a loop"},
    {"    return n\n", 2, 12, "a kernel returns nothing"},
    {"    if get_local_id() < n:\n        barrier()\n", 3, 9,
     "not all threads of a block may get here: it stands in or after control flow that depends on "
     "the thread"},
};

const Rejected kFiles[] = {
    {"import numpy\ndef f(n: u32):\n    pass\n", 1, 1, "import of 'numpy' is not supported"},
    {"from math import exp\ndef f(n: u32):\n    pass\n", 1, 1,
     "import from 'math' is not supported"},
    {"import hologram_lang\ndef f(n: u32):\n    pass\n", 1, 1,
     "import hologram_lang hides the names behind a prefix"},
    {"x = 1\n", 1, 1, "this file has no kernel"},
    {"", 1, 1, "this file has no kernel"},
    {"if True:\n    pass\ndef f(n: u32):\n    pass\n", 1, 1,
     "'if' cannot stand outside a function"},
    {"class A:\n    pass\ndef f(n: u32):\n    pass\n", 1, 1, "classes are not supported"},
    {"top = group_max(1.0)\ndef f(n: u32):\n    pass\n", 1, 7,
     "group_max() belongs into a function"},
    {"@jit\ndef f(n: u32):\n    pass\n", 1, 1, "the decorator @jit is not supported"},
    {"def f(n):\n    pass\n", 1, 7, "parameter 'n' has no type"},
    {"def f(*args):\n    pass\n", 1, 7, "*args parameters are not supported"},
    {"def f(**kw):\n    pass\n", 1, 7, "**kwargs parameters are not supported"},
    {"def f(n: u32 = 3):\n    pass\n", 1, 14, "default values are not supported"},
    {"def f(n: u32, n: f32):\n    pass\n", 1, 15, "there are two parameters named 'n'"},
    {"def f(a: DeviceArray[f32], a_shape0: u64):\n    pass\n", 1, 28,
     "'a_shape0' is kept for the shape of 'a'"},
    {"def f(a: DeviceArray):\n    pass\n", 1, 10, "DeviceArray needs its element type"},
    {"def f(a: DeviceArray[f32, 9]):\n    pass\n", 1, 27,
     "the number of dimensions is a literal from 1 to 8"},
    {"def f(a: list):\n    pass\n", 1, 10, "there is no type 'list'"},
    {"def f(n: u32) -> f32:\n    pass\n", 1, 18, "a kernel returns nothing"},
    {"def f(n: u32):\n    pass\ndef f(n: u32):\n    pass\n", 3, 5,
     "'f' is already a function of this file"},
    {"@inline\ndef g(x: f32) -> f32:\n    if x > 0:\n        return x\ndef f(n: u32):\n    pass\n",
     2, 5, "'g' can end without returning a value"},
    {"@inline\ndef g(x: f32):\n    return x\ndef f(n: u32):\n    pass\n", 3, 12,
     "'g' has no result type"},
    {"@inline\ndef g(x: f32) -> f32:\n    return g(x)\ndef f(n: u32):\n    pass\n", 3, 12,
     "'g' calls itself: helpers are not recursive"},
    {"@inline\ndef g(x: f32) -> f32:\n    return x\ndef f(n: u32):\n    y = g(f64(1))\n", 5, 11,
     "parameter 'x' is f32, this is f64"},
    {"@inline\ndef g(a: DeviceArray[f32]):\n    a[0] = 1.0\n"
     "def f(a: DeviceArray[i32]):\n    g(a)\n",
     5, 7, "parameter 'a' is DeviceArray[f32], this is DeviceArray[i32]"},
    {"@inline\ndef g(a: DeviceArray[f32]):\n    a[0] = 1.0\n"
     "def f(a: DeviceArray[f32]):\n    x = g(a)\n",
     5, 9, "this call gives no value"},
    {"N = n + 1\ndef f(n: u32):\n    pass\n", 1, 5, "'n' is not defined"},
    {"N: u8 = 300\ndef f(n: u32):\n    pass\n", 1, 9, "300 does not fit u8"},
    {"N = 1 / 0\ndef f(n: u32):\n    pass\n", 1, 7, "division by zero"},
    {"N = 2 ** 200\ndef f(n: u32):\n    pass\n", 1, 7, "the constant is too large"},
    {"def f(n: u32):\n\tx = 1\n    \ty = 2\n", 3, 6, "the indentation mixes tabs and spaces"},
    {"def \xc3\xa9(n: u32):\n    pass\n", 1, 5,
     "only ASCII may stand outside comments and doc strings"},
};

// What is said about a source, sorted by place.
std::vector<Diagnostic> diagnose(const std::string& source, std::string& rendered) {
  Diagnostics diagnostics("k.py", source);
  check(parse(source, diagnostics), diagnostics);
  auto compiled = compile_source(source, "k.py");
  if (!compiled) rendered = compiled.error().message();
  return diagnostics.sorted();
}

void expect_rejected(const Rejected& c, const std::string& source) {
  SCOPED_TRACE(source);
  std::string rendered;
  diagnose(source, rendered);
  const std::string head = fmt::format("k.py:{}:{}: error: {}\n", c.line, c.column, c.message);
  ASSERT_NE(rendered, "") << "it was accepted";
  EXPECT_EQ(rendered.substr(0, head.size()), head);
  // The caret stands under the column, and there is one diagnostic alone.
  size_t carets = 0;
  for (size_t at = rendered.find("error: "); at != std::string::npos;
       at = rendered.find("error: ", at + 1))
    ++carets;
  EXPECT_EQ(carets, 1u) << rendered;
  const size_t second = rendered.find('\n', head.size());
  const std::string caret = rendered.substr(second + 1, 4 + c.column);
  EXPECT_EQ(caret.size(), 4 + c.column);
  EXPECT_EQ(caret.find('^'), 4 + c.column - 1) << rendered;
}

TEST(LangErrors, BodiesAreRejectedWithPlaceAndReason) {
  for (const Rejected& c : kBodies) expect_rejected(c, std::string(kHead) + c.source);
}

TEST(LangErrors, FilesAreRejectedWithPlaceAndReason) {
  for (const Rejected& c : kFiles) expect_rejected(c, c.source);
}

TEST(LangErrors, AllErrorsOfAFileAreReported) {
  const std::string source =
      "import os\n"
      "def f(a: DeviceArray[f32], n: u32):\n"
      "    x = lambda y: y\n"
      "    try:\n"
      "        z = undefined\n"
      "    finally:\n"
      "        pass\n"
      "    a[n] = n + i32(2) + u64(2)\n"
      "def g(b: DeviceArray[nothing]):\n"
      "    b[0] = 'no'\n"
      "    break\n";
  std::string rendered;
  std::vector<Position> places;
  for (const Diagnostic& d : diagnose(source, rendered)) places.push_back(d.at);
  const std::vector<Position> expected = {{1, 1},  {3, 9},   {4, 5}, {8, 23},
                                          {9, 22}, {10, 12}, {11, 5}};
  EXPECT_EQ(places, expected) << rendered;
}

TEST(LangErrors, HostileNestingIsRefused) {
  std::string rendered;
  diagnose("def f(n: u32):\n    x = " + std::string(100000, '(') + "1\n", rendered);
  EXPECT_NE(rendered.find("this is nested too deeply"), std::string::npos);
  diagnose("def f(n: u32):\n    x = " + std::string(100000, '-') + "1\n", rendered);
  EXPECT_NE(rendered.find("this is nested too deeply"), std::string::npos);
  std::string blocks = "def f(n: u32):\n";
  for (int i = 1; i < 400; ++i) blocks += std::string(i * 4, ' ') + "if n > 0:\n";
  diagnose(blocks, rendered);
  EXPECT_NE(rendered.find("this is nested too deeply"), std::string::npos);
}

TEST(LangErrors, SourcesThatGrowAreRefusedAtOnce) {
  const auto refused = [](const std::string& source, const std::string& message) {
    const auto kernels = compile_source(source, "k.py");
    ASSERT_FALSE(kernels);
    EXPECT_EQ(kernels.error().code(), ErrorCode::parse_error);
    EXPECT_EQ(kernels.error().message().substr(0, message.size()), message);
  };
  // A long chain is a deep tree.
  std::string sum = "def f(a: DeviceArray[f32]):\n    a[0] = a[0]";
  for (int i = 0; i < 100000; ++i) sum += "+1";
  refused(sum + "\n", "k.py:2:298: error: this expression is too long");
  std::string chain = "def f(n: u32):\n    if n == 0:\n        pass\n";
  for (int i = 1; i < 1000; ++i) chain += "    elif n == 1:\n        pass\n";
  refused(chain, "k.py:294:10: error: this is nested too deeply");
  // 2^30 calls.
  std::string helpers = "@inline\ndef h0(x: f32) -> f32:\n    return x\n";
  for (int i = 1; i <= 30; ++i)
    helpers +=
        fmt::format("@inline\ndef h{0}(x: f32) -> f32:\n    return h{1}(x) + h{1}(x)\n", i, i - 1);
  refused(helpers + "def f(a: DeviceArray[f32]):\n    a[0] = h30(a[0])\n",
          "k.py:94:5: error: kernel 'f' is too large: ");
  std::string lines = "def f(a: DeviceArray[f32]):\n";
  for (int i = 0; i < 20000; ++i) lines += "    a[0] = a[0] + 1\n";
  refused(lines, "k.py:1:5: error: kernel 'f': ");
}

TEST(LangErrors, ALineBetweenTwoLevelsIsRefusedAndTheRestIsRead) {
  std::string rendered;
  std::vector<Position> places;
  for (const Diagnostic& d : diagnose("def f(n: u32):\n        x = 1\n    y = z\n    w = v\n"
                                      "def g(k: u32):\n    a = b\n",
                                      rendered))
    places.push_back(d.at);
  const std::vector<Position> expected = {{3, 5}, {3, 9}, {4, 9}, {6, 9}};
  EXPECT_EQ(places, expected) << rendered;
}

}  // namespace
}  // namespace hologram::lang
