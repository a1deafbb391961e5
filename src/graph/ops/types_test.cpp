// Every operator of the table on every type that it says it takes: whatever is wrong with the
// made-up inputs, the type must not be.
#include <gmock/gmock.h>

#include "graph/operator.h"
#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

std::string inner(const std::string& type) {
  const bool wrapped = type.starts_with("seq(") || type.starts_with("opt(");
  return wrapped ? type.substr(4, type.size() - 5) : type;
}

// Ones, so that no divisor is 0 and no index is far away.
Tensor ones(DType type, const Dims& dims) {
  Tensor t = *Tensor::allocate(type, dims);
  if (type == DType::string) {
    for (std::string& s : t.strings()) s = "1";
    return t;
  }
  std::fill_n(t.as<uint8_t>(), t.bytes(), uint8_t{0});
  const size_t size = size_of(type);
  if (is_integer(type) || type == DType::boolean)
    for (int64_t i = 0; size > 0 && i < t.count(); ++i) t.as<uint8_t>()[i * size] = 1;
  return t;
}

TEST(Types, NoKernelRefusesATypeOfItsEntry) {
  size_t tried = 0;
  for (const Operator* entry : operators().all()) {
    // The compiler's own operators are written by passes that know their types.
    if (entry->domain == "hologram") continue;
    if (entry->control_flow || !entry->deterministic || entry->inputs.empty()) continue;
    bool tensors = true;
    for (const auto& formal : entry->inputs)
      tensors &= formal.type != "V" && inner(formal.type) == formal.type;
    for (const auto& formal : entry->outputs) tensors &= inner(formal.type) == formal.type;
    if (!tensors) continue;
    const std::string variable = entry->inputs[0].type;
    for (int code = 1; code < 64; ++code) {
      const auto type = dtype_from_code(static_cast<uint8_t>(code));
      const auto constraint = entry->constraints.find(variable);
      if (!type || constraint == entry->constraints.end() || !constraint->second.has(*type))
        continue;
      for (const Dims& dims : {Dims{2, 2}, Dims{1, 2, 2, 2}, Dims{2}}) {
        Call call{entry->name, {}, {}, 1, entry->domain};
        for (const auto& formal : entry->inputs) {
          if (formal.optional) break;
          DType own = *type;
          if (auto fixed = dtype_from_name(formal.type)) {
            own = *fixed;
          } else if (formal.type != variable) {
            const TypeSet others = entry->constraints.at(formal.type);
            for (int other = 63; other > 0 && !others.has(own); --other)
              if (auto t = dtype_from_code(static_cast<uint8_t>(other)); t && others.has(*t))
                own = *t;
          }
          call.inputs.push_back(ones(own, dims));
        }
        ++tried;
        const auto result = evaluate_all(call);
        if (result) break;
        const std::string message = result.error().to_string();
        EXPECT_THAT(message, ::testing::Not(::testing::HasSubstr(
                                 "type " + std::string(name_of(*type)) + "; supported")))
            << entry->domain << " " << entry->name;
        EXPECT_THAT(message, ::testing::Not(::testing::HasSubstr("are not addressable")))
            << entry->domain << " " << entry->name;
        EXPECT_NE(result.error().code(), ErrorCode::internal)
            << entry->domain << " " << entry->name << ": " << message;
      }
    }
  }
  EXPECT_GT(tried, 1000u);
}

}  // namespace
}  // namespace hologram::graph::testing
