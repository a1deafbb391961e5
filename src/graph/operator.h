// Operator: one entry of the operator table, and the table.
//
// An entry says what a node may look like and one way to run it. Families of entries live in
// graph/ops/, a file each; ops/families.h lists them. Names and meanings are ONNX's newest form:
// older forms are rewritten when a model is read (onnx/canonical.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "isa/builder.h"

namespace hologram::graph {

// A set of element types.
class TypeSet {
 public:
  constexpr TypeSet() = default;
  constexpr TypeSet(std::initializer_list<DType> types) {
    for (DType type : types) bits_ |= bit(type);
  }
  constexpr bool has(DType type) const { return bits_ & bit(type); }
  constexpr TypeSet operator|(TypeSet other) const {
    TypeSet result;
    result.bits_ = bits_ | other.bits_;
    return result;
  }
  std::string to_string() const;

 private:
  static constexpr uint64_t bit(DType type) { return uint64_t{1} << static_cast<unsigned>(type); }
  uint64_t bits_ = 0;
};

inline constexpr TypeSet kSignedIntegers = {DType::i8, DType::i16, DType::i32, DType::i64};
inline constexpr TypeSet kUnsignedIntegers = {DType::u8, DType::u16, DType::u32, DType::u64};
inline constexpr TypeSet kIntegers = kSignedIntegers | kUnsignedIntegers;
inline constexpr TypeSet kFloats = {DType::f16, DType::bf16, DType::f32, DType::f64};
inline constexpr TypeSet kNumbers = kIntegers | kFloats;
inline constexpr TypeSet kBool = {DType::boolean};
inline constexpr TypeSet kComplex = {DType::complex64, DType::complex128};
inline constexpr TypeSet kSmallFloats = {DType::f8e4m3fn,   DType::f8e4m3fnuz, DType::f8e5m2,
                                         DType::f8e5m2fnuz, DType::f8e8m0,     DType::f4e2m1};
inline constexpr TypeSet kSmallIntegers = {DType::i4, DType::u4, DType::i2, DType::u2};
inline constexpr TypeSet kStrings = {DType::string};
inline constexpr TypeSet kIndices = {DType::i32, DType::i64};
// All types of the ISA; all types with a size; everything.
inline constexpr TypeSet kCompute = kNumbers | kBool;
inline constexpr TypeSet kFixedSize = kCompute | kComplex | kSmallFloats | kSmallIntegers;
inline constexpr TypeSet kAll = kFixedSize | kStrings;

// What a pointwise expression sees: registers that hold one element of each input.
class PointwiseContext {
 public:
  PointwiseContext(isa::Builder& builder, std::span<const isa::Register> inputs, DType result,
                   const Attributes& attributes)
      : b(builder), result(result), attributes(attributes), inputs_(inputs) {}

  isa::Builder& b;
  const DType result;  // the element type of the output
  const Attributes& attributes;

  size_t count() const { return inputs_.size(); }
  bool has(size_t index) const { return index < inputs_.size() && inputs_[index].valid(); }
  isa::Register in(size_t index) const { return inputs_[index]; }
  DType type(size_t index = 0) const { return b.type_of(inputs_[index]); }
  // A number in any type.
  isa::Register number(DType type, double value) const {
    if (is_float(type)) return b.floating(type, value);
    if (type == DType::boolean) return b.boolean(value != 0);
    if (is_unsigned_integer(type)) return b.unsigned_integer(type, static_cast<uint64_t>(value));
    return b.integer(type, static_cast<int64_t>(value));
  }
  // A number in the type of the output.
  isa::Register number(double value) const { return number(result, value); }

 private:
  std::span<const isa::Register> inputs_;
};

class InferContext;

// What a composition sees: the graph it writes into, and the node it replaces.
struct ComposeContext {
  Graph& graph;
  const Node& node;

  bool has(size_t index) const { return node.input(index) != kNoValue; }
  ValueId in(size_t index) const { return node.inputs[index]; }
  const ValueType& type(size_t index) const { return graph.value(node.inputs[index]).type; }
  const Attributes& attributes() const { return node.attributes; }
  NodeBuilder op(std::string op, std::string domain = "") const {
    return graph.op(std::move(op), std::move(domain));
  }
  // A scalar constant in any computing type.
  ValueId number(DType type, double value) const;
  // "to" as ONNX numbers it is not used inside the graph: the attribute names the DType.
  ValueId cast(ValueId value, DType to) const;
};

using InferFunction = Status (*)(InferContext&);
using PointwiseFunction = isa::Register (*)(PointwiseContext&);
// The values that take the place of the node's outputs.
using ComposeFunction = Result<std::vector<ValueId>> (*)(ComposeContext&);

struct Operator {
  struct Formal {
    std::string name;
    // "T": a tensor of a type variable; "f32": a tensor of that type; "seq(T)", "opt(T)":
    // of tensors of T; "V": any value at all (V and only V).
    std::string type;
    bool optional = false;
    bool variadic = false;  // the last one: any number, also none where optional
  };

  std::string name, domain;
  std::vector<Formal> inputs, outputs;
  std::map<std::string, TypeSet, std::less<>> constraints;
  std::map<std::string, char, std::less<>> attributes;  // name -> kind; see `attributes()` below

  InferFunction infer = nullptr;  // shapes (and types the signature leaves open)
  // One way to run. A pointwise operator may also name a kernel, for types that do not compute.
  PointwiseFunction pointwise = nullptr;
  ComposeFunction compose = nullptr;
  std::string kernel;
  bool pointwise_body = false;  // its nodes, all pointwise, are in the subgraph "body"
  bool control_flow = false;    // run by the session: If, Loop, Scan
  bool deterministic = true;    // false: never folded, never merged (random operators)
};

// Writes one entry: table.add("Add").signature("A:T, B:T -> C:T").where("T", kNumbers)...
class OperatorBuilder {
 public:
  explicit OperatorBuilder(Operator& entry) : entry_(entry) {}
  // "X:T, W:T, B:T? -> Y:T": `?` may be left out, `...` any number.
  OperatorBuilder& signature(std::string_view text);
  OperatorBuilder& where(std::string variable, TypeSet types) {
    entry_.constraints[std::move(variable)] = types;
    return *this;
  }
  // "axis:i, pads:is, mode:s": i integer, f number, s text, is, fs, ss lists (written I, F, S),
  // t tensor, g graph.
  OperatorBuilder& attributes(std::string_view text);
  OperatorBuilder& infer(InferFunction f) {
    entry_.infer = f;
    return *this;
  }
  OperatorBuilder& pointwise(PointwiseFunction f) {
    entry_.pointwise = f;
    return *this;
  }
  OperatorBuilder& compose(ComposeFunction f) {
    entry_.compose = f;
    return *this;
  }
  // Without a name: the operator's own.
  OperatorBuilder& kernel(std::string name = "") {
    entry_.kernel = name.empty() ? entry_.name : std::move(name);
    return *this;
  }
  OperatorBuilder& control_flow() {
    entry_.control_flow = true;
    return *this;
  }
  OperatorBuilder& pointwise_body() {
    entry_.pointwise_body = true;
    return *this;
  }
  OperatorBuilder& random() {
    entry_.deterministic = false;
    return *this;
  }

 private:
  Operator& entry_;
};

class OperatorTable {
 public:
  OperatorBuilder add(std::string name, std::string domain = "");
  // nullptr when there is none.
  const Operator* find(std::string_view name, std::string_view domain = "") const;
  std::vector<const Operator*> all() const;

 private:
  std::map<std::pair<std::string, std::string>, Operator> entries_;
};

// The one table, with every family; made on first use.
const OperatorTable& operators();
// The entry of a node; an error that names the node when there is none.
Result<const Operator*> operator_of(const Node& node);

// How a node of known types runs.
enum class Way { pointwise, kernel, composition, control_flow };
Result<Way> way_of(const Graph& graph, const Node& node, const Operator& entry);

}  // namespace hologram::graph
