// Any operators can follow one another: random chains compute the same with all passes and without,
// interpreted and by native code. FUSION_SEED and FUSION_CHAINS draw others.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>

#include "tests/fusion/chain.h"

namespace hologram::fusion {
namespace {

using kernels::Tensor;

uint64_t setting(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

double number(const Tensor& t, int64_t i) {
  switch (t.dtype) {
    case DType::f64:
      return t.as<double>()[i];
    case DType::f32:
      return static_cast<double>(t.as<float>()[i]);
    case DType::f16:
      return static_cast<double>(static_cast<float>(t.as<Half>()[i]));
    default:
      return static_cast<double>(static_cast<float>(t.as<BFloat16>()[i]));
  }
}

// "" where the values are equal: to the bit (any NaN is one), or within `tolerance` of the largest.
std::string difference(const Value& a, const Value& b, double tolerance) {
  if (a.kind != b.kind) return "another kind of value";
  if (a.is_sequence()) {
    if (a.sequence->size() != b.sequence->size()) return "a sequence of another length";
    for (size_t i = 0; i < a.sequence->size(); ++i)
      if (auto d = difference((*a.sequence)[i], (*b.sequence)[i], tolerance); !d.empty()) return d;
    return "";
  }
  if (!a.is_tensor()) return "";
  const Tensor &x = a.tensor, &y = b.tensor;
  if (x.dtype != y.dtype || !(x.dims == y.dims))
    return "shape " + x.dims.to_string() + " and " + y.dims.to_string();
  if (x.dtype == DType::string)
    return std::equal(x.strings().begin(), x.strings().end(), y.strings().begin()) ? "" : "strings";
  if (!is_float(x.dtype))
    return x.bytes() == 0 || std::memcmp(x.data, y.data, x.bytes()) == 0 ? "" : "elements";
  double largest = 1e-30;
  for (int64_t i = 0; i < x.count(); ++i)
    if (const double v = std::fabs(number(x, i)); std::isfinite(v)) largest = std::max(largest, v);
  const size_t size = size_of(x.dtype);
  for (int64_t i = 0; i < x.count(); ++i) {
    if (std::memcmp(x.data + i * size, y.data + i * size, size) == 0) continue;
    const double v = number(x, i), w = number(y, i);
    if (std::isnan(v) && std::isnan(w)) continue;
    if (tolerance > 0 && std::fabs(v - w) <= tolerance * largest) continue;
    return "element " + std::to_string(i) + ": " + std::to_string(v) + " and " + std::to_string(w);
  }
  return "";
}

struct Tally {
  size_t chains = 0, fused = 0, exact = 0, close = 0, symbolic = 0;
  std::set<std::string> operators;
  std::set<std::pair<std::string, std::string>> pairs;
};

void check(uint64_t seed, size_t length, bool native, Tally& tally) {
  Chain chain = draw_chain(seed, length);
  if (chain.drawn.size() < 2 || chain.graph.outputs.empty()) return;
  const std::string text = chain.graph.to_text();
  const auto outputs = chain.graph.outputs;
  Chain again = draw_chain(seed, length);  // graphs are not copied
  Chain third = draw_chain(seed, length);
  const auto plain = run(std::move(chain.graph), chain.inputs, false, false);
  ASSERT_TRUE(plain) << plain.error().to_string() << "\nseed " << seed << "\n" << text;
  auto compare = [&](const Result<std::vector<Value>>& other, bool is_native) {
    ASSERT_TRUE(other) << other.error().to_string() << "\nseed " << seed << "\n" << text;
    for (size_t o = 0; o < plain->size(); ++o) {
      const Known& known = chain.known[outputs[o]];
      const bool loose = known.reordered || (is_native && known.inexact);
      if (loose && known.jumps) continue;  // both are right
      const bool half = (*plain)[o].is_tensor() && bits_of((*plain)[o].tensor.dtype) == 16;
      const std::string d = difference((*plain)[o], (*other)[o], !loose ? 0 : half ? 2e-2 : 2e-4);
      EXPECT_EQ(d, "") << "output " << o << (is_native ? ", native" : "") << ", seed " << seed
                       << "\n"
                       << text;
      ++(loose ? tally.close : tally.exact);
    }
  };
  compare(run(std::move(again.graph), again.inputs, true, false, &tally.fused), false);
  if (native) compare(run(std::move(third.graph), third.inputs, true, true), true);
  ++tally.chains;
  tally.operators.insert(chain.drawn.begin(), chain.drawn.end());
  for (size_t i = 1; i < chain.drawn.size(); ++i)
    tally.pairs.emplace(chain.drawn[i - 1], chain.drawn[i]);
}

TEST(Fusion, PairsAndChainsComputeTheSameFusedAndNot) {
  const uint64_t first = setting("FUSION_SEED", 1), count = setting("FUSION_CHAINS", 600);
  Tally tally;
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed)
    check(seed, seed % 3 == 0 ? 2 : 3 + seed % 10, seed % 4 == 0, tally);
  printf("%zu chains, %zu operators, %zu pairs, %zu groups, %zu outputs exact, %zu close\n",
         tally.chains, tally.operators.size(), tally.pairs.size(), tally.fused, tally.exact,
         tally.close);
  if (count < 600) return;
  // The test tests something.
  EXPECT_GT(tally.chains, count * 9 / 10);
  EXPECT_GT(tally.operators.size(), 100u);
  EXPECT_GT(tally.pairs.size(), 800u);
  EXPECT_GT(tally.fused, 300u);
  EXPECT_GT(tally.exact, tally.close);
}

}  // namespace
}  // namespace hologram::fusion
