// Writer: short names for what compositions write most.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "graph/operator.h"

namespace hologram::graph::ops {

using Values = std::vector<ValueId>;

// Lives as long as the composition's function. Each call adds one node.
class Writer {
 public:
  explicit Writer(ComposeContext& c) : c_(c) {}

  ValueId list(std::vector<int64_t> numbers) const { return c_.graph.constant(std::move(numbers)); }
  ValueId number(DType type, double value) const { return c_.number(type, value); }

  ValueId call(const char* op, std::initializer_list<ValueId> inputs) const {
    return c_.op(op).inputs(std::vector<ValueId>(inputs));
  }
  ValueId add(ValueId a, ValueId b) const { return call("Add", {a, b}); }
  ValueId sub(ValueId a, ValueId b) const { return call("Sub", {a, b}); }
  ValueId mul(ValueId a, ValueId b) const { return call("Mul", {a, b}); }
  ValueId cast(ValueId a, DType to) const { return c_.cast(a, to); }

  ValueId reshape(ValueId a, std::vector<int64_t> dims) const {
    return call("Reshape", {a, list(std::move(dims))});
  }
  ValueId transpose(ValueId a, std::vector<int64_t> order) const {
    return c_.op("Transpose").input(a).attribute("perm", std::move(order));
  }
  ValueId unsqueeze(ValueId a, std::vector<int64_t> axes) const {
    return call("Unsqueeze", {a, list(std::move(axes))});
  }
  ValueId gather(ValueId a, ValueId indices, int64_t axis = 0) const {
    return c_.op("Gather").input(a).input(indices).attribute("axis", axis);
  }
  ValueId concat(std::initializer_list<ValueId> parts, int64_t axis) const {
    return c_.op("Concat").inputs(std::vector<ValueId>(parts)).attribute("axis", axis);
  }
  // a[..., begin:end, ...] along one axis.
  ValueId slice(ValueId a, int64_t axis, ValueId begin, ValueId end) const {
    return call("Slice", {a, begin, end, list({axis})});
  }
  ValueId slice(ValueId a, int64_t axis, int64_t begin, int64_t end) const {
    return slice(a, axis, list({begin}), list({end}));
  }
  // Dimension `axis` of a value, as a vector of one i64 (or a scalar); keeps symbols.
  ValueId dim(ValueId a, int64_t axis) const {
    return c_.op("Shape").input(a).attribute("start", axis).attribute("end", axis + 1);
  }
  ValueId scalar_dim(ValueId a, int64_t axis) const {
    return call("Squeeze", {dim(a, axis), list({0})});
  }
  ValueId shift_right(ValueId a, ValueId by) const {
    return c_.op("BitShift").input(a).input(by).attribute("direction", "RIGHT");
  }
  // 0, 1, ... below a scalar i64.
  ValueId range(ValueId limit) const {
    return call("Range", {c_.graph.constant(int64_t{0}), limit, c_.graph.constant(int64_t{1})});
  }

 private:
  ComposeContext& c_;
};

}  // namespace hologram::graph::ops
