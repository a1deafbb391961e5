#include "graph/passes/strided_view.h"

#include <algorithm>

namespace hologram::graph {
namespace {

using Factor = StridedView::Factor;
using Axes = std::vector<std::vector<Factor>>;
constexpr int64_t kUnknown = StridedView::kUnknown;

bool is_one(const Dim& dim) { return !dim.is_symbol() && dim.value() == 1; }
// The same number, or the same symbol; there is only one "?" in a value that gets here.
bool equal(const Dim& a, const Dim& b) { return a == b; }

std::optional<StridedView> whole(const Graph& graph, ValueId id) {
  const Shape* shape = shape_of(graph, id);
  if (!shape) return std::nullopt;
  StridedView view{.root = id, .axes = Axes(shape->rank())};
  int64_t stride = 1;
  size_t unnamed = 0;
  for (size_t axis = shape->rank(); axis-- > 0;) {
    const Dim& dim = (*shape)[axis];
    if (is_one(dim)) continue;
    view.axes[axis].push_back({dim, stride});
    if (dim.is_symbol()) {
      unnamed += dim.symbol() == "?";
      stride = kUnknown;
    } else if (stride != kUnknown) {
      stride *= dim.value();
    }
  }
  if (unnamed > 1) return std::nullopt;
  return view;
}

// The same elements in the same order under another shape.
bool regroup(Axes& axes, const Shape& to) {
  std::vector<Factor> left;
  for (const auto& axis : axes) left.insert(left.end(), axis.begin(), axis.end());
  Axes result(to.rank());
  // Where all sizes but one are the same on both sides, that one is too, whatever it is called.
  bool renamed = false;
  for (size_t axis = to.rank(); axis-- > 0;) {
    std::vector<Factor>& factors = result[axis];
    const Dim& dim = to[axis];
    if (is_one(dim)) continue;
    if (dim.is_symbol()) {
      if (left.empty() || !left.back().size.is_symbol()) return false;
      if (!equal(left.back().size, dim) || dim.symbol() == "?") {
        if (renamed) return false;
        renamed = true;
      }
      factors.push_back({dim, left.back().stride});
      left.pop_back();
      continue;
    }
    int64_t need = dim.value();
    while (need > 1) {
      if (left.empty() || left.back().size.is_symbol()) return false;
      Factor& last = left.back();
      const int64_t size = last.size.value();
      if (size <= 0) return false;
      if (need % size == 0) {
        factors.insert(factors.begin(), last);
        need /= size;
        left.pop_back();
      } else if (size % need == 0 && last.stride != kUnknown) {
        factors.insert(factors.begin(), {Dim(need), last.stride});
        last = {Dim(size / need), last.stride * need};
        need = 1;
      } else {
        return false;
      }
    }
    if (need != 1) return false;
    // Neighbours that follow each other are one factor again.
    for (size_t i = factors.size(); i-- > 1;) {
      Factor &outer = factors[i - 1], &inner = factors[i];
      if (inner.stride != kUnknown && outer.stride == inner.stride * inner.size.value() &&
          outer.stride != 0) {
        outer = {Dim(outer.size.value() * inner.size.value()), inner.stride};
        factors.erase(factors.begin() + static_cast<ptrdiff_t>(i));
      }
    }
  }
  if (!left.empty()) return false;
  axes = std::move(result);
  return true;
}

// Elements [first, first + length) of an axis.
bool narrow(StridedView& view, size_t axis, int64_t first, int64_t length) {
  std::vector<Factor>& factors = view.axes[axis];
  if (factors.empty()) return first == 0 && length == 1;
  if (factors.size() != 1 || factors[0].stride == kUnknown || factors[0].size.is_symbol() ||
      first < 0 || length < 1 || first + length > factors[0].size.value())
    return false;
  view.offset += first * factors[0].stride;
  if (length == 1)
    factors.clear();
  else
    factors[0].size = length;
  return true;
}

std::optional<std::vector<int64_t>> integers(const Graph& graph, ValueId id) {
  const Tensor* t = constant_of(graph, id);
  if (!t) return std::nullopt;
  if (t->dtype == DType::i64)
    return std::vector<int64_t>(t->as<int64_t>(), t->as<int64_t>() + t->count());
  if (t->dtype == DType::i32)
    return std::vector<int64_t>(t->as<int32_t>(), t->as<int32_t>() + t->count());
  return std::nullopt;
}

class Tracer {
 public:
  Tracer(const Graph& graph, const ValueUses& uses) : graph_(graph), uses_(uses) {}

  std::optional<StridedView> trace(ValueId id, int depth) const {
    const Node* node = depth < 32 ? uses_.maker(id) : nullptr;
    if (node && node->domain.empty() && !node->inputs.empty())
      if (auto view = through(*node, id, depth)) return view;
    return whole(graph_, id);
  }

 private:
  std::optional<StridedView> through(const Node& node, ValueId id, int depth) const {
    const std::string& op = node.op;
    if (op == "Mul" || op == "Div") {
      for (size_t side = 0; side < (op == "Mul" ? 2 : 1); ++side)
        if (const auto number = scalar_constant(graph_, node.inputs[1 - side])) {
          const Shape *x = shape_of(graph_, node.inputs[side]), *y = shape_of(graph_, id);
          if (!x || !y || x->rank() != y->rank()) return std::nullopt;
          auto view = trace(node.inputs[side], depth + 1);
          if (view) view->scale *= op == "Mul" ? *number : 1 / *number;
          return view;
        }
      return std::nullopt;
    }
    const Shape *from = shape_of(graph_, node.inputs[0]), *to = shape_of(graph_, id);
    if (!from || !to) return std::nullopt;
    const bool known = op == "Transpose" || op == "Reshape" || op == "Squeeze" ||
                       op == "Unsqueeze" || op == "Flatten" || op == "Identity" || op == "Split" ||
                       op == "Slice" || op == "Gather" || op == "Expand";
    if (!known) return std::nullopt;
    auto view = trace(node.inputs[0], depth + 1);
    if (!view || view->axes.size() != from->rank()) return std::nullopt;
    bool good = false;
    if (op == "Transpose")
      good = transpose(*view, node);
    else if (op == "Split")
      good = split(*view, node, *from, id);
    else if (op == "Slice")
      good = slice(*view, node, *from, *to);
    else if (op == "Gather")
      good = gather(*view, node, *from);
    else if (op == "Expand")
      good = expand(*view, *from, *to);
    else
      good = regroup(view->axes, *to);
    if (!good) return std::nullopt;
    return view;
  }

  static bool transpose(StridedView& view, const Node& node) {
    const auto perm = node.attributes.integers("perm");
    Axes axes(view.axes.size());
    for (size_t i = 0; i < axes.size(); ++i)
      axes[i] = view.axes[perm.empty() ? axes.size() - 1 - i : static_cast<size_t>(perm[i])];
    view.axes = std::move(axes);
    return true;
  }
  static std::optional<size_t> axis_of(int64_t axis, size_t rank) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
    return static_cast<size_t>(axis);
  }
  bool split(StridedView& view, const Node& node, const Shape& from, ValueId id) const {
    const auto axis = axis_of(node.attributes.integer("axis"), from.rank());
    if (!axis) return false;
    int64_t first = 0;
    for (ValueId out : node.outputs) {
      const Shape* shape = out == kNoValue ? nullptr : shape_of(graph_, out);
      if (!shape || (*shape)[*axis].is_symbol()) return false;
      if (out == id) return narrow(view, *axis, first, (*shape)[*axis].value());
      first += (*shape)[*axis].value();
    }
    return false;
  }
  bool slice(StridedView& view, const Node& node, const Shape& from, const Shape& to) const {
    const auto starts = integers(graph_, node.input(1)), axes = integers(graph_, node.input(3));
    const auto steps = integers(graph_, node.input(4));
    if (!starts || (node.input(3) != kNoValue && !axes) || (node.input(4) != kNoValue && !steps))
      return false;
    for (size_t i = 0; i < starts->size(); ++i) {
      if (steps && (*steps)[i] != 1) return false;
      const auto axis = axis_of(axes ? (*axes)[i] : static_cast<int64_t>(i), from.rank());
      if (!axis || from[*axis].is_symbol() || to[*axis].is_symbol()) return false;
      int64_t start = (*starts)[i];
      if (start < 0) start = std::max<int64_t>(0, start + from[*axis].value());
      if (!narrow(view, *axis, start, to[*axis].value())) return false;
    }
    return true;
  }
  bool gather(StridedView& view, const Node& node, const Shape& from) const {
    const Tensor* index = constant_of(graph_, node.inputs[1]);
    const auto axis = axis_of(node.attributes.integer("axis"), from.rank());
    const auto values = integers(graph_, node.inputs[1]);
    if (!index || !axis || !values || index->dims.rank() != 0 || from[*axis].is_symbol())
      return false;
    const int64_t at = (*values)[0] + ((*values)[0] < 0 ? from[*axis].value() : 0);
    if (!narrow(view, *axis, at, 1)) return false;
    view.axes.erase(view.axes.begin() + static_cast<ptrdiff_t>(*axis));
    return true;
  }
  static bool expand(StridedView& view, const Shape& from, const Shape& to) {
    if (from.rank() > to.rank()) return false;
    view.axes.insert(view.axes.begin(), to.rank() - from.rank(), {});
    for (size_t i = 0; i < to.rank(); ++i) {
      if (i >= to.rank() - from.rank() && equal(from[i - (to.rank() - from.rank())], to[i]))
        continue;
      if (!view.axes[i].empty() || to[i].is_symbol()) return false;
      view.axes[i].push_back({to[i], 0});
    }
    return true;
  }

  const Graph& graph_;
  const ValueUses& uses_;
};

}  // namespace

std::optional<StridedView> trace_view(const Graph& graph, const ValueUses& uses, ValueId id) {
  return Tracer(graph, uses).trace(id, 0);
}

}  // namespace hologram::graph
