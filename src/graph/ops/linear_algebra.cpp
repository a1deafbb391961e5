// Products of matrices.
#include "graph/ops/linear_algebra.h"

#include <map>

#include "graph/ops/families.h"

namespace hologram::graph::ops {

Status matmul_shape(InferContext& c, size_t left, size_t right) {
  if (!c.shape(left) || !c.shape(right)) return {};
  std::vector<Dim> a = c.shape(left)->dims(), b = c.shape(right)->dims();
  if (a.empty() || b.empty()) return fail(ErrorCode::shape_mismatch, "a scalar operand");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  const Dim inner_a = a.back(), inner_b = b[b.size() - 2];
  if (!inner_a.is_symbol() && !inner_b.is_symbol() && inner_a != inner_b)
    return fail(ErrorCode::shape_mismatch, "{} and {} do not multiply", c.shape(left)->to_string(),
                c.shape(right)->to_string());
  HOLOGRAM_TRY(Shape batch, broadcast_shapes(Shape(std::vector<Dim>(a.begin(), a.end() - 2)),
                                             Shape(std::vector<Dim>(b.begin(), b.end() - 2))));
  std::vector<Dim> dims = batch.dims();
  if (!row) dims.push_back(a[a.size() - 2]);
  if (!column) dims.push_back(b.back());
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

namespace {

Status matmul(InferContext& c) { return matmul_shape(c, 0, 1); }

Status gemm(InferContext& c) {
  const Shape *a = c.shape(0), *b = c.shape(1);
  if (!a || !b) return {};
  if (a->rank() != 2 || b->rank() != 2)
    return fail(ErrorCode::shape_mismatch, "{} and {} are not matrices", a->to_string(),
                b->to_string());
  const bool ta = c.integer("transA") != 0, tb = c.integer("transB") != 0;
  const Dim &inner_a = (*a)[ta ? 0 : 1], &inner_b = (*b)[tb ? 1 : 0];
  if (!inner_a.is_symbol() && !inner_b.is_symbol() && inner_a != inner_b)
    return fail(ErrorCode::shape_mismatch, "{} and {} do not multiply", a->to_string(),
                b->to_string());
  c.set_shape(0, Shape(std::vector<Dim>{(*a)[ta ? 1 : 0], (*b)[tb ? 0 : 1]}));
  return {};
}

Status det(InferContext& c) {
  const Shape* x = c.shape(0);
  if (!x) return {};
  const size_t rank = x->rank();
  if (rank < 2) return fail(ErrorCode::shape_mismatch, "{} is not a matrix", x->to_string());
  const Dim &rows = (*x)[rank - 2], &columns = (*x)[rank - 1];
  if (!rows.is_symbol() && !columns.is_symbol() && rows != columns)
    return fail(ErrorCode::shape_mismatch, "{} is not square", x->to_string());
  c.set_shape(0, Shape(std::vector<Dim>(x->dims().begin(), x->dims().end() - 2)));
  return {};
}

// Equations of letters and an arrow; the kernel works out the others, and says what is wrong.
Status einsum(InferContext& c) {
  const std::string_view equation = c.text("equation");
  const size_t arrow = equation.find("->");
  if (arrow == equation.npos || equation.find('.') != equation.npos) return {};
  std::map<char, Dim> sizes;
  size_t input = 0, axis = 0;
  for (const char letter : equation.substr(0, arrow)) {
    if (letter == ' ') continue;
    if (letter == ',') {
      ++input, axis = 0;
      continue;
    }
    if (input >= c.input_count()) return {};
    const Shape* shape = c.shape(input);
    if (!shape || axis >= shape->rank()) return {};
    const Dim& size = (*shape)[axis++];
    const auto [known, is_new] = sizes.try_emplace(letter, size);
    // A number says more than a symbol, and any other size more than 1, which may broadcast.
    if (!is_new && !size.is_symbol() && size != Dim(1)) known->second = size;
    if (!is_new && size.is_symbol() && known->second == Dim(1)) return {};
  }
  std::vector<Dim> dims;
  for (const char letter : equation.substr(arrow + 2)) {
    if (letter == ' ') continue;
    const auto known = sizes.find(letter);
    if (known == sizes.end()) return {};
    dims.push_back(known->second);
  }
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

constexpr TypeSet kProducts = kFloats | TypeSet{DType::i32, DType::i64, DType::u32, DType::u64};

}  // namespace

void add_linear_algebra(OperatorTable& table) {
  table.add("MatMul")
      .signature("A:T, B:T -> Y:T")
      .where("T", kProducts)
      .attributes("ordered:i")
      .infer(matmul)
      .kernel();
  table.add("Gemm")
      .signature("A:T, B:T, C:T? -> Y:T")
      .where("T", kProducts)
      .attributes("alpha:f, beta:f, transA:i, transB:i")
      .infer(gemm)
      .kernel();
  table.add("Det").signature("X:T -> Y:T").where("T", kFloats).infer(det).kernel();
  table.add("Einsum")
      .signature("Inputs:T... -> Output:T")
      .where("T", kNumbers)
      .attributes("equation:s")
      .infer(einsum)
      .kernel();
}

}  // namespace hologram::graph::ops
