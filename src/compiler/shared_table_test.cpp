// A network that ends with the embeddings it begins with: the archive holds them once.
#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Tensor;
using kernels::Value;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr int64_t kColumns = 40;

// Rows of a table by `ids`, times the table; `other` makes that another one.
Graph network(int64_t rows, bool other) {
  Graph g;
  const ValueId ids = add_input(g, "ids", {symbol("n")}, DType::i64);
  const ValueId table = g.add_constant(varied({rows, kColumns}), "table");
  const ValueId matrix = other ? g.add_constant(varied({rows, kColumns}, 2), "other") : table;
  const ValueId found = g.op("Gather").input(table).input(ids);
  const ValueId turned =
      g.op("Transpose").input(matrix).attribute("perm", std::vector<int64_t>{1, 0});
  g.outputs = {found, ValueId(g.op("MatMul").input(found).input(turned))};
  g.output_names = {"rows", "scores"};
  return g;
}

std::vector<float> elements(const Value& value) {
  const float* data = value.tensor.as<float>();
  return {data, data + value.tensor.count()};
}

TEST(SharedTable, IsStoredOnceAndRead) {
  for (const int64_t rows : {1000, 1008, 992, 20, 5}) {
    const auto bytes = compile(network(rows, false));
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
    const auto apart = compile(network(rows, true));
    ASSERT_TRUE(apart.has_value()) << apart.error().to_string();
    if (rows >= 992) {
      EXPECT_LT(bytes->size() + static_cast<size_t>(rows * kColumns * 3), apart->size());
    }
    const auto session = open_bytes(*bytes);
    ASSERT_TRUE(session.has_value()) << session.error().to_string();
    const Tensor table = varied({rows, kColumns});
    const std::vector<int64_t> ids = {0, rows - 1, rows / 2, -1, 3};
    const std::vector inputs{Value(tensor<int64_t>({5}, ids))};
    const auto results = session->run(inputs);
    ASSERT_TRUE(results.has_value()) << results.error().to_string();
    std::vector<float> expected;
    for (const int64_t id : ids)
      for (int64_t i = 0; i < kColumns; ++i)
        expected.push_back(table.as<float>()[(id < 0 ? id + rows : id) * kColumns + i]);
    EXPECT_THAT(elements((*results)[0]), ElementsAreArray(expected));
    EXPECT_EQ((*results)[1].tensor.dims, kernels::Dims({5, rows}));
    const auto plain = open_bytes(*compile(network(rows, false), {.optimise = false}));
    ASSERT_TRUE(plain.has_value());
    const std::vector<float> scores = elements((*plain->run(inputs))[1]);
    for (size_t i = 0; i < scores.size(); ++i)
      ASSERT_NEAR(elements((*results)[1])[i], scores[i], 1e-4);
    const std::vector outside{Value(tensor<int64_t>({1}, {rows}))};
    EXPECT_THAT(session->run(outside).error().to_string(), HasSubstr("index"));
  }
}

}  // namespace
}  // namespace hologram::compiler
