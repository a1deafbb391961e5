// JSON IR that must be refused: each with its code and the whole message, which names the place.
#include <gtest/gtest.h>

#include <string>

#include "lang/compile.h"

namespace hologram::lang {
namespace {

struct Refused {
  std::string json;
  ErrorCode code;
  std::string message;  // after "JSON IR: "
};

std::string kernel(const std::string& fields) {
  return R"({"version": 1, "kernel": {)" + fields + "}}";
}
// A kernel of an array a (f32), a matrix m (f32), a scalar n (u32) and these statements.
std::string body(const std::string& statements, const std::string& more = "") {
  return kernel(R"("name": "k", "params": [
      {"name": "a", "type": {"kind": "device_array", "element_type": "f32"}},
      {"name": "m", "type": {"kind": "device_array", "element_type": "f32", "rank": 2}},
      {"name": "n", "type": {"kind": "scalar", "type": "u32"}}],
      "body": [)" +
                statements + "]" + more);
}
std::string parameter(const std::string& type) {
  return kernel(R"("name": "k", "body": [], "params": [{"name": "a", "type": )" + type + "}]");
}
std::string let(const std::string& value, const std::string& type = "f32") {
  return body(R"({"kind": "let", "name": "x", "type": ")" + type + R"(", "value": )" + value + "}");
}
std::string number(const std::string& type, const std::string& value) {
  return R"({"kind": "literal", "type": ")" + type + R"(", "value": )" + value + "}";
}
std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

constexpr ErrorCode kParse = ErrorCode::parse_error, kVerify = ErrorCode::verify_error;
const std::string kOne = number("f32", "1"), kIndex = number("u32", "0");
const std::string kTrue = number("bool", "true");
const std::string kVar = R"({"kind": "var", "name": "n"})";

const Refused kCases[] = {
    // Not JSON at all.
    {"", kParse,
     "parse error at line 1, column 1: syntax error while parsing value - unexpected end of input; "
     "expected '[', '{', or a literal"},
    {R"({"version": 1,)", kParse,
     "parse error at line 1, column 15: syntax error while parsing object key - unexpected end of "
     "input; expected string literal"},
    {"{\"version\": 1}\n}", kParse,
     "parse error at line 2, column 1: syntax error while parsing value - unexpected '}'; expected "
     "end of input"},
    {"\"\xff\"", kParse,
     "parse error at line 1, column 2: syntax error while parsing value - invalid string: "
     "ill-formed "
     "UTF-8 byte; last read: '\"\xff'"},
    {let(number("f64", "1e999")), kParse, "number overflow parsing '1e999'"},
    // The document.
    {"[]", kParse, "$: expected an object"},
    {"null", kParse, "$: expected an object"},
    {R"({"kernel": {}})", kParse, "$: 'version' is missing"},
    {R"({"version": 1})", kParse, "$: 'kernel' is missing"},
    {R"({"version": 2, "kernel": {}})", kParse,
     "$: version 2 is not supported; this reader knows version 1"},
    {R"({"version": "1", "kernel": {}})", kParse, "$: 'version' is not a number from 0 to 1000000"},
    {R"({"version": 1.5, "kernel": {}})", kParse, "$: 'version' is not a number from 0 to 1000000"},
    {R"({"version": -1, "kernel": {}})", kParse, "$: 'version' is not a number from 0 to 1000000"},
    {R"({"version": 18446744073709551616, "kernel": {}})", kParse,
     "$: 'version' is not a number from 0 to 1000000"},
    {R"({"version": 1, "kernel": []})", kParse, "$.kernel: expected an object"},
    {R"({"version": 1, "kernel": {"name": "k", "params": [], "body": []}, "comment": 1})", kParse,
     "$: unknown field 'comment'"},
    {R"({"version": 1, "version": 1, "kernel": {}})", kParse, "the field 'version' is given twice"},
    // The kernel.
    {kernel(""), kParse, "$.kernel: 'name' is missing"},
    {kernel(R"("name": 7)"), kParse, "$.kernel: 'name' is not a string"},
    {kernel(R"("name": "k")"), kParse, "$.kernel: 'params' is missing"},
    {kernel(R"("name": "k", "params": {})"), kParse, "$.kernel: 'params' is not an array"},
    {kernel(R"("name": "k", "params": [])"), kParse, "$.kernel: 'body' is missing"},
    {kernel(R"("name": "k", "params": [], "body": [], "grid": 1)"), kParse,
     "$.kernel: unknown field 'grid'"},
    {kernel(R"("name": "k", "name": "l", "params": [], "body": [])"), kParse,
     "the field 'name' is given twice"},
    {kernel(R"("name": "2k", "params": [], "body": [])"), kVerify, "$.kernel: '2k' is not a name"},
    {kernel(R"("name": "k", "doc": 5, "params": [], "body": [])"), kParse,
     "$.kernel: 'doc' is not a string"},
    // Parameters.
    {kernel(R"("name": "k", "params": ["a"], "body": [])"), kParse,
     "$.kernel.params[0]: expected an object"},
    {kernel(R"("name": "k", "params": [{"name": "a"}], "body": [])"), kParse,
     "$.kernel.params[0]: 'type' is missing"},
    {parameter(R"("f32")"), kParse, "$.kernel.params[0].type: expected an object"},
    {parameter(R"({"kind": "list"})"), kParse,
     "$.kernel.params[0].type: there is no kind of type 'list'; there is scalar and device_array"},
    {parameter(R"({"kind": "scalar", "type": "f128"})"), kParse,
     "$.kernel.params[0].type: 'type': there is no type 'f128' to compute in"},
    {parameter(R"({"kind": "scalar", "type": "f8e4m3fn"})"), kParse,
     "$.kernel.params[0].type: 'type': there is no type 'f8e4m3fn' to compute in"},
    {parameter(R"({"kind": "scalar", "type": 32})"), kParse,
     "$.kernel.params[0].type: 'type' is not a string"},
    {parameter(R"({"kind": "device_array", "element_type": "f32", "rank": 0})"), kParse,
     "$.kernel.params[0].type: an array has at least one dimension"},
    {parameter(R"({"kind": "device_array", "element_type": "f32", "rank": 9})"), kParse,
     "$.kernel.params[0].type: 'rank' is not a number from 0 to 8"},
    {parameter(R"({"kind": "device_array", "element_type": "f32", "shape": [3]})"), kParse,
     "$.kernel.params[0].type: unknown field 'shape'"},
    {kernel(R"("name": "k", "body": [], "params": [
         {"name": "a", "type": {"kind": "scalar", "type": "f32"}},
         {"name": "a", "type": {"kind": "scalar", "type": "u32"}}])"),
     kVerify, "$.kernel.params[1]: 'a' is declared twice"},
    {kernel(R"("name": "k", "body": [], "params": [
         {"name": "a", "type": {"kind": "scalar", "type": "f32"}},
         {"name": "a_shape0", "type": {"kind": "scalar", "type": "u64"}}])"),
     kVerify,
     "$.kernel.params[1]: parameter 'a_shape0' has a name that is kept for the shape of 'a'"},
    // The launch.
    {body("", R"(, "launch": [1])"), kParse, "$.kernel.launch: expected an object"},
    {body("", R"(, "launch": {"threads": [], "block": [1, 1]})"), kParse,
     "$.kernel.launch: 'block' has three numbers"},
    {body("", R"(, "launch": {"threads": [], "block": [1, 1, -1]})"), kParse,
     "$.kernel.launch: 'block' has three numbers from 1 to 1024"},
    {body("", R"(, "launch": {"threads": [], "block": [1, 1, 1]})"), kVerify,
     "$.kernel.launch: 1 to 3 sizes are needed"},
    {body("", R"(, "launch": {"block": [64, 64, 1], "threads": [)" + kIndex + "]}"), kVerify,
     "$.kernel.launch: a block has at most 1024 threads, not 4096"},
    {body("", R"(, "launch": {"block": [1, 1, 1], "threads": [)" + kIndex + ", " + kOne + "]}"),
     kVerify, "$.kernel.launch.threads[1]: a number of threads is an integer"},
    {body("", R"(, "launch": {"block": [1, 1, 1], "threads": [{"kind": "call", "function":
         "get_global_id", "args": [)" +
                  kIndex + "]}]}"),
     kVerify,
     "$.kernel.launch.threads[0]: launch sizes are made of scalar parameters, shapes and "
     "constants"},
    // Statements.
    {body("5"), kParse, "$.kernel.body[0]: expected an object"},
    {body("{}"), kParse, "$.kernel.body[0]: 'kind' is missing"},
    {body(R"({"kind": "goto"})"), kParse,
     "$.kernel.body[0]: there is no statement 'goto'; there is let, shared, assign, if, for, "
     "while, "
     "break, continue, return, expression, barrier, fence, parallel_map_unary, parallel_map_binary "
     "and parallel_reduce"},
    {body(R"({"kind": "barrier", "scope": "grid"})"), kParse,
     "$.kernel.body[0]: unknown field 'scope'"},
    {body(R"({"kind": "barrier", "line": -3, "column": 1})"), kParse,
     "$.kernel.body[0]: 'line' is not a number from 0 to 1073741824"},
    {body(R"({"kind": "barrier", "line": 3})"), kParse, "$.kernel.body[0]: 'column' is missing"},
    {body(R"({"kind": "let", "name": "x"})"), kParse, "$.kernel.body[0]: 'type' is missing"},
    {body(R"({"kind": "let", "name": "a", "type": "f32"})"), kVerify,
     "$.kernel.body[0]: 'a' is declared twice"},
    {body(R"({"kind": "let", "name": "a b", "type": "f32"})"), kVerify,
     "$.kernel.body[0]: 'a b' is not a name"},
    {let(kOne, "f64"), kVerify, "$.kernel.body[0]: the value is f32, expected f64"},
    {body(R"({"kind": "assign", "target": )" + kOne + R"(, "value": )" + kOne + "}"), kVerify,
     "$.kernel.body[0]: the target of an assign is a var or an index"},
    {body(R"({"kind": "assign", "value": )" + kOne + "}"), kParse,
     "$.kernel.body[0]: 'target' is missing"},
    {body(R"({"kind": "if", "condition": )" + kOne + R"(, "then": []})"), kVerify,
     "$.kernel.body[0]: the condition is f32, expected bool"},
    {body(R"({"kind": "if", "condition": )" + kTrue + "}"), kParse,
     "$.kernel.body[0]: 'then' is missing"},
    {body(R"({"kind": "if", "condition": )" + kTrue + R"(, "then": [{"kind": "break"}]})"), kVerify,
     "$.kernel.body[0].then[0]: it stands outside a loop"},
    {body(R"({"kind": "for", "var": "i", "type": "f32", "start": )" + kOne + R"(, "stop": )" +
          kOne + R"(, "step": )" + kOne + R"(, "body": []})"),
     kVerify, "$.kernel.body[0]: a loop counts in integers, not f32"},
    {body(R"({"kind": "while", "condition": )" + kTrue + R"(, "body": {}})"), kParse,
     "$.kernel.body[0]: 'body' is not an array"},
    {body(R"({"kind": "return", "value": )" + kOne + "}"), kVerify,
     "$.kernel.body[0]: nothing is returned here"},
    {body(R"({"kind": "expression", "value": )" + kOne + "}"), kVerify,
     "$.kernel.body[0]: only a call can stand alone"},
    {body(R"({"kind": "shared", "name": "t", "element_type": "f32", "shape": [0]})"), kVerify,
     "$.kernel.body[0]: shared memory has 1 to 1048576 elements"},
    {body(R"({"kind": "shared", "name": "t", "element_type": "f32", "shape": [99999999999]})"),
     kParse, "$.kernel.body[0]: 'shape' holds numbers from 1 to 1048576"},
    {body(R"({"kind": "while", "condition": )" + kTrue +
          R"(, "body": [{"kind": "shared", "name": "t", "element_type": "f32", "shape": [4]}]})"),
     kVerify, "$.kernel.body[0].body[0]: shared memory belongs to the kernel's own level"},
    {body(R"({"kind": "parallel_reduce", "op": "xor", "input": "a", "output": "a", "count": )" +
          kVar + "}"),
     kVerify, "$.kernel.body[0]: the op is add, mul, min or max, not 'xor'"},
    {body(R"({"kind": "parallel_map_unary", "function": "exp", "input": "m", "output": "a",
         "count": )" +
          kVar + "}"),
     kVerify, "$.kernel.body[0]: 'm' has 2 dimensions, not 1"},
    {body(R"({"kind": "parallel_map_unary", "function": "pow", "input": "a", "output": "a",
         "count": )" +
          kVar + "}"),
     kVerify, "$.kernel.body[0]: there is no function 'pow' of 1 values"},
    // Expressions.
    {let("1"), kParse, "$.kernel.body[0].value: expected an object"},
    {let(R"({"kind": "lambda"})"), kParse,
     "$.kernel.body[0].value: there is no expression 'lambda'; there is literal, var, binary_op, "
     "unary_op, cast, index, call, if_expr and shape"},
    {let(R"({"kind": "literal", "type": "f32"})"), kParse,
     "$.kernel.body[0].value: 'value' is missing"},
    {let(number("f32", R"("one")")), kParse,
     R"($.kernel.body[0].value: the value of a float is a number, "inf", "-inf" or "nan")"},
    {let(number("bool", "1")), kParse,
     "$.kernel.body[0].value: the value of a bool is true or false"},
    {let(number("i32", "1.5")), kParse,
     "$.kernel.body[0].value: the value of an integer is an integer"},
    {let(number("u64", "18446744073709551616")), kParse,
     "$.kernel.body[0].value: the value of an integer is an integer"},
    {let(number("i64", "9223372036854775808")), kParse,
     "$.kernel.body[0].value: 9223372036854775808 does not fit i64"},
    {let(number("u8", "-1"), "u8"), kParse, "$.kernel.body[0].value: -1 does not fit u8"},
    {let(number("u8", "300"), "u8"), kVerify, "$.kernel.body[0].value: 300 does not fit u8"},
    {let(R"({"kind": "var", "name": "y"})"), kVerify,
     "$.kernel.body[0].value: there is no variable 'y'"},
    {let(R"({"kind": "var", "name": "a"})"), kVerify,
     "$.kernel.body[0].value: 'a' is an array, not a value"},
    {let(R"({"kind": "binary_op", "op": "plus", "left": )" + kOne + R"(, "right": )" + kOne + "}"),
     kParse, "$.kernel.body[0].value: there is no binary operator 'plus'"},
    {let(R"({"kind": "binary_op", "op": "add", "left": )" + kOne + "}"), kParse,
     "$.kernel.body[0].value: 'right' is missing"},
    {let(R"({"kind": "binary_op", "op": "add", "left": )" + kOne + R"(, "right": )" + kIndex + "}"),
     kVerify, "$.kernel.body[0].value: the right operand is u32, expected f32"},
    {let(R"({"kind": "binary_op", "op": "shl", "left": )" + kOne + R"(, "right": )" + kIndex + "}"),
     kVerify, "$.kernel.body[0].value: shl does not take f32"},
    {let(R"({"kind": "unary_op", "op": "sqrt", "value": )" + kOne + "}"), kParse,
     "$.kernel.body[0].value: there is no unary operator 'sqrt'"},
    {let(R"({"kind": "unary_op", "op": "not", "value": )" + kOne + "}"), kVerify,
     "$.kernel.body[0].value: not does not take f32"},
    {let(R"({"kind": "cast", "type": "string", "value": )" + kOne + "}"), kParse,
     "$.kernel.body[0].value: 'type': there is no type 'string' to compute in"},
    {let(R"({"kind": "index", "array": "a", "indices": []})"), kVerify,
     "$.kernel.body[0].value: 1 operands are needed, not 0"},
    {let(R"({"kind": "index", "array": "m", "indices": [)" + kIndex + ", " + kOne + "]}"), kVerify,
     "$.kernel.body[0].value.indices[1]: an index is an integer, not f32"},
    {let(R"({"kind": "index", "array": "n", "indices": [)" + kIndex + "]}"), kVerify,
     "$.kernel.body[0].value: 'n' is not an array"},
    {let(R"({"kind": "call", "function": "teleport", "args": []})"), kVerify,
     "$.kernel.body[0].value: there is no function 'teleport'"},
    {let(R"({"kind": "call", "function": "exp", "args": []})"), kVerify,
     "$.kernel.body[0].value: 1 operands are needed, not 0"},
    {let(R"({"kind": "call", "function": "pow", "args": [)" + kOne + ", {}]}"), kParse,
     "$.kernel.body[0].value.args[1]: 'kind' is missing"},
    {let(R"({"kind": "call", "function": "get_global_id", "args": [)" + kVar + "]}", "u32"),
     kVerify, "$.kernel.body[0].value: the axis is the literal 0, 1 or 2"},
    {let(R"({"kind": "call", "function": "atomic_add", "args": [)" + kOne + "]}"), kVerify,
     "$.kernel.body[0].value: the first argument is an array"},
    {let(R"({"kind": "if_expr", "condition": )" + kTrue + R"(, "then": )" + kOne + R"(, "else": )" +
         kIndex + "}"),
     kVerify, "$.kernel.body[0].value: the other branch is u32, expected f32"},
    {let(R"({"kind": "shape", "array": "m", "axis": 2})", "u64"), kVerify,
     "$.kernel.body[0].value: 'm' has no axis 2"},
    {let(R"({"kind": "shape", "array": "m", "axis": 99})", "u64"), kParse,
     "$.kernel.body[0].value: 'axis' is not a number from 0 to 8"},
    // Functions.
    {body("", R"(, "functions": [{"name": "f", "params": []}])"), kParse,
     "$.kernel.functions[0]: 'body' is missing"},
    {body("", R"(, "functions": [{"name": "exp", "params": [], "body": []}])"), kVerify,
     "$.kernel.functions[0]: function 'exp' has an intrinsic's name"},
    {body("", R"(, "functions": [{"name": "f", "params": [], "body": []},
         {"name": "f", "params": [], "body": []}])"),
     kVerify, "$.kernel.functions[1]: two functions are named 'f'"},
    {body("", R"(, "functions": [{"name": "f", "params": [], "result": "f32", "body": []}])"),
     kVerify, "$.kernel.functions[0]: the function can end without a result"},
    {body("", R"(, "functions": [{"name": "f", "params": [], "body": [{"kind": "expression",
         "value": {"kind": "call", "function": "f", "args": []}}]}])"),
     kVerify, "$.kernel: function 'f' calls itself"},
    // Hostile shapes.
    {repeat("[", 100000), kParse, "$: nested too deeply"},
    {repeat(R"({"a":)", 100000), kParse, "$: nested too deeply"},
    {body(repeat(R"({"kind": "while", "body": [], "condition": )", 2) + kOne + "}}"), kParse,
     "$.kernel.body[0].condition: there is no expression 'while'; there is literal, var, "
     "binary_op, "
     "unary_op, cast, index, call, if_expr and shape"},
};

TEST(JsonIrErrors, EachIsRefusedWithPlaceAndReason) {
  for (const Refused& c : kCases) {
    SCOPED_TRACE(c.json.substr(0, 400));
    const auto kernel = compile_json(c.json);
    if (kernel) {
      ADD_FAILURE() << "it was accepted";
      continue;
    }
    EXPECT_EQ(kernel.error().code(), c.code);
    EXPECT_EQ(kernel.error().message(), "JSON IR: " + c.message);
  }
  EXPECT_GE(std::size(kCases), 90u);
}

TEST(JsonIrErrors, DeepTreesAreRefusedByThePlaceTheyAreTooDeepAt) {
  const std::string deep =
      let(repeat(R"({"kind": "unary_op", "op": "neg", "value": )", 530) + kOne + repeat("}", 530));
  const auto expression = compile_json(deep);
  ASSERT_FALSE(expression);
  EXPECT_EQ(expression.error().code(), kVerify);
  EXPECT_TRUE(expression.error().message().ends_with("value: expressions are nested too deeply"));
  std::string blocks;
  for (int i = 0; i < 250; ++i)
    blocks += R"({"kind": "if", "condition": )" + kTrue + R"(, "then": [)";
  const auto statement = compile_json(body(blocks + repeat("]}", 250)));
  ASSERT_FALSE(statement);
  EXPECT_TRUE(statement.error().message().ends_with("then[0]: statements are nested too deeply"));
}

// Each helper calls the one before it twice: 2^40 copies, refused before any is made.
TEST(JsonIrErrors, ExplodingFunctionsAreRefused) {
  std::string functions = R"({"name": "f0", "params": [], "body": []})";
  for (int i = 1; i < 40; ++i) {
    const std::string call = R"({"kind": "expression", "value": {"kind": "call", "function": "f)" +
                             std::to_string(i - 1) + R"(", "args": []}})";
    functions += R"(, {"name": "f)" + std::to_string(i) + R"(", "params": [], "body": [)" + call +
                 ", " + call + "]}";
  }
  const auto kernel = compile_json(
      body(R"({"kind": "expression", "value": {"kind": "call", "function": "f39", "args": []}})",
           R"(, "functions": [)" + functions + "]"));
  ASSERT_FALSE(kernel);
  EXPECT_NE(kernel.error().message().find("with its functions written out it has"),
            std::string::npos)
      << kernel.error().message();
}

}  // namespace
}  // namespace hologram::lang
