// Draws plans of one step whose operands may be anything that an operator's signature allows, or
// not even that, and values to run them on.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "archive/plan_generated.h"
#include "graph/operator.h"
#include "runtime/session/session.h"

namespace hologram::testing {

// An operand of a step: a tensor, a sequence or an optional of a type; or left out.
struct Operand {
  std::string form;  // "", "seq", "opt"; "-": left out
  DType dtype = DType::f32;
};

// One step of a kernel, and nothing else.
struct OneStep {
  std::string kernel;
  std::vector<Operand> inputs, outputs;
  std::vector<kernels::Attribute> attributes;
};

// Opens the archive of such a plan.
Result<runtime::Session> open(const OneStep& step);

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  int64_t below(int64_t limit) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
  }
  bool chance(int percent) { return below(100) < percent; }

  // Operands of types that the signature allows.
  OneStep step(const graph::Operator& entry, bool with_attributes);
  // Values for its inputs: of any shapes, which often are alike.
  std::vector<kernels::Value> values(const OneStep& step);

 private:
  DType type(const graph::Operator& entry, const std::string& variable);
  kernels::Attribute attribute(const std::string& name, char kind);
  kernels::Dims dims();
  kernels::Tensor tensor(DType dtype, kernels::Dims dims);
  int64_t integer();
  double number();
  std::string text();

  std::mt19937 random_;
  std::map<std::string, DType, std::less<>> bound_;
};

}  // namespace hologram::testing
