// From one element type to another.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

using isa::Register;
using P = PointwiseContext;

// `to` holds a DType's code: the reader of models has translated ONNX's own numbers.
Status cast_type(InferContext& c) {
  auto type = dtype_from_code(static_cast<uint8_t>(c.integer("to", 255)));
  if (!type) return fail(ErrorCode::invalid_argument, "attribute 'to' names no element type");
  c.set_dtype(0, *type);
  if (c.shape(0)) c.set_shape(0, *c.shape(0));
  if (const auto* contents = c.contents(0);
      contents && (*type == DType::i64 || *type == DType::i32))
    c.set_contents(0, *contents);
  return {};
}

Register cast(P& p) { return p.b.convert(p.in(0), p.result); }

}  // namespace

void add_cast(OperatorTable& table) {
  table.add("Cast")
      .signature("input:T1 -> output:T2")
      .where("T1", kAll)
      .attributes("to:i, saturate:i, round_mode:s")
      .infer(cast_type)
      .pointwise(cast)
      .kernel();
}

}  // namespace hologram::graph::ops
