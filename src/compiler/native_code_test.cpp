// Native code in archives: what it computes, and when it runs.
#include "compiler/native_code.h"

#include <gmock/gmock.h>

#include <cstring>

#include "archive/code_section.h"
#include "archive/layout.h"
#include "compiler/compile.h"
#include "runtime/session/session.h"
#include "support/aligned.h"
#include "support/log.h"

namespace hologram::compiler {
namespace {

using archive::KeyPair;
using archive::SectionKind;
using archive::TrustedKeys;
using graph::Graph;
using graph::ValueId;
using graph::ValueType;
using kernels::Tensor;
using kernels::Value;
using runtime::Session;

// What an archive is opened with. The warnings of refusals are wanted here.
class NativeCode : public ::testing::Test {
 protected:
  void SetUp() override { log::set_level(log::Level::error); }
  void TearDown() override { log::set_level(log::Level::warn); }

  static std::shared_ptr<const TrustedKeys> trusting(const KeyPair& key) {
    return std::make_shared<TrustedKeys>(std::vector{key.public_key()});
  }
  static Result<Session> open(const std::vector<std::byte>& bytes,
                              std::shared_ptr<const TrustedKeys> trusted) {
    auto owner = std::make_shared<AlignedBytes>(*AlignedBytes::allocate(bytes.size()));
    std::memcpy(owner->data(), bytes.data(), bytes.size());
    HOLOGRAM_TRY(auto archive, archive::Archive::open(owner->bytes().first(bytes.size()), owner,
                                                      {.trusted = std::move(trusted)}));
    return Session::open(std::move(archive));
  }
  const KeyPair key_ = *KeyPair::generate();
};

ValueId input(Graph& g, std::vector<Dim> dims, DType dtype = DType::f32) {
  return g.add_input("x" + std::to_string(g.inputs.size()),
                     ValueType::tensor(dtype, Shape(std::move(dims))));
}

// (x * y + z) clipped, with y and z broadcast in whatever way their shapes say.
Graph arithmetic(std::vector<std::vector<Dim>> shapes, DType dtype) {
  Graph g;
  std::vector<ValueId> in;
  for (auto& shape : shapes) in.push_back(input(g, std::move(shape), dtype));
  const ValueId product = g.op("Mul").input(in[0]).input(in[1]);
  const ValueId sum = g.op("Add").input(product).input(in[2]);
  const ValueId absolute = g.op("Abs").input(sum);
  g.outputs = {g.op("Max").input(absolute).input(in[0]), absolute};
  g.output_names = {"y", "absolute"};
  EXPECT_TRUE(g.status()) << g.status().error().to_string();
  return g;
}

Tensor drawn(DType dtype, const kernels::Dims& dims) {
  Tensor tensor = *Tensor::allocate(dtype, dims);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const int value = static_cast<int>(i * 7919 % 2003) - 1001;
    if (dtype == DType::f32)
      tensor.as<float>()[i] = 0.37f * static_cast<float>(value);
    else
      tensor.as<int32_t>()[i] = value;
  }
  return tensor;
}

TEST_F(NativeCode, GivesTheInterpretersBitsForEveryBroadcast) {
  const Dim n(std::string("n")), m(std::string("m"));
  struct Case {
    std::vector<std::vector<Dim>> types;
    std::vector<kernels::Dims> dims;
  };
  const Case cases[] = {
      {{{1000}, {1000}, {1000}}, {{1000}, {1000}, {1000}}},  // all whole
      {{{70, 90}, {90}, {}}, {{70, 90}, {90}, {}}},          // a row, a number
      {{{7, 9, 8, 8}, {9, 1, 1}, {7, 9, 8, 8}}, {{7, 9, 8, 8}, {9, 1, 1}, {7, 9, 8, 8}}},
      {{{40, 3}, {3}, {40, 1}}, {{40, 3}, {3}, {40, 1}}},  // short runs
      {{{n, m}, {m}, {n, 1}}, {{33, 65}, {65}, {33, 1}}},  // symbols
      {{{n, m}, {m}, {n, 1}}, {{5, 1}, {1}, {5, 1}}},      // that are 1 after all
      {{{n, m}, {m}, {n, 1}}, {{0, 4}, {4}, {0, 1}}},      // nothing
      {{{n}, {m}, {1}}, {{300}, {1}, {1}}},                // not known before
      {{{2, 1, 3, 1, 50}, {4, 1, 5, 1}, {3, 1, 1}}, {{2, 1, 3, 1, 50}, {4, 1, 5, 1}, {3, 1, 1}}},
      {{{300000}, {1}, {300000}}, {{300000}, {1}, {300000}}},  // more than one thread
  };
  for (const DType dtype : {DType::f32, DType::i32})
    for (const Case& c : cases) {
      const auto native_bytes = compile(arithmetic(c.types, dtype), {.key = key_});
      ASSERT_TRUE(native_bytes) << native_bytes.error().to_string();
      const auto native = open(*native_bytes, trusting(key_));
      ASSERT_TRUE(native) << native.error().to_string();
      EXPECT_TRUE(native->has_native_code());
      const auto interpreted = open(*compile(arithmetic(c.types, dtype)), nullptr);
      ASSERT_TRUE(interpreted);
      EXPECT_FALSE(interpreted->has_native_code());
      std::vector<Value> inputs;
      for (const auto& dims : c.dims) inputs.emplace_back(drawn(dtype, dims));
      const auto a = native->run(inputs), b = interpreted->run(inputs);
      ASSERT_TRUE(a) << a.error().to_string();
      ASSERT_TRUE(b) << b.error().to_string();
      for (size_t o = 0; o < b->size(); ++o) {
        ASSERT_TRUE((*a)[o].tensor.dims == (*b)[o].tensor.dims);
        EXPECT_EQ(std::memcmp((*a)[o].tensor.data, (*b)[o].tensor.data, (*b)[o].tensor.bytes()), 0)
            << c.dims[0].to_string() << " output " << o;
      }
    }
}

TEST_F(NativeCode, ReportsDivisionByZero) {
  Graph g;
  const ValueId x = input(g, {64}, DType::i32), y = input(g, {64}, DType::i32);
  g.outputs = {g.op("Abs").input(g.op("Div").input(x).input(y))};
  g.output_names = {"q"};
  const auto session = open(*compile(std::move(g), {.key = key_}), trusting(key_));
  ASSERT_TRUE(session && session->has_native_code());
  std::vector<int32_t> ones(64, 1), zero(64, 1);
  zero[40] = 0;
  const auto values = [&](const std::vector<int32_t>& v) {
    return Value(*Tensor::from<int32_t>({64}, v));
  };
  EXPECT_TRUE(session->run(std::vector{values(ones), values(ones)}));
  const auto result = session->run(std::vector{values(ones), values(zero)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::trap);
}

TEST_F(NativeCode, RunsOnlyForAKeyThatIsTrusted) {
  const auto graph = [] { return arithmetic({{64}, {64}, {64}}, DType::f32); };
  const auto bytes = *compile(graph(), {.key = key_});
  EXPECT_TRUE(open(bytes, trusting(key_))->has_native_code());
  EXPECT_FALSE(open(bytes, trusting(*KeyPair::generate()))->has_native_code());
  EXPECT_FALSE(open(bytes, std::make_shared<TrustedKeys>())->has_native_code());
  EXPECT_FALSE(
      open(*compile(graph(), {.targets = {}, .key = key_}), trusting(key_))->has_native_code());
  EXPECT_FALSE(compile(graph(), {.targets = {"z80"}, .key = key_}));
}

// Changes a section and makes every hash of the file right again: what an attacker would do.
std::vector<std::byte> with_section(std::vector<std::byte> bytes, SectionKind kind,
                                    FunctionRef<void(std::span<std::byte>)> change) {
  archive::Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::vector<archive::Entry> entries(header.section_count);
  std::byte* const table = bytes.data() + header.table_offset;
  std::memcpy(entries.data(), table, entries.size() * sizeof(archive::Entry));
  for (archive::Entry& entry : entries) {
    if (entry.kind != kind) continue;
    const auto section = std::span(bytes).subspan(entry.offset, entry.size);
    change(section);
    entry.hash = archive::section_hash(section);
  }
  std::memcpy(table, entries.data(), entries.size() * sizeof(archive::Entry));
  header.table_hash = hash128(std::as_bytes(std::span(entries)));
  header.hash = archive::header_hash(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

TEST_F(NativeCode, NeverRunsWhenAnyByteOfItWasChanged) {
  Graph g;
  g.outputs = {g.op("Neg").input(g.op("Abs").input(input(g, {64}, DType::i8)))};
  g.output_names = {"y"};
  const auto good = *compile(std::move(g), {.targets = {"x86-64-v2"}, .key = key_});
  size_t size = 0;
  const auto same = with_section(good, SectionKind::code, [&](auto code) { size = code.size(); });
  ASSERT_GT(size, 200u);
  ASSERT_TRUE(open(same, trusting(key_))->has_native_code());
  for (size_t at = 0; at < size; ++at) {
    const auto bad =
        with_section(good, SectionKind::code, [&](auto code) { code[at] ^= std::byte{0x20}; });
    const auto session = open(bad, trusting(key_));
    EXPECT_FALSE(session && session->has_native_code()) << "byte " << at;
  }
}

TEST_F(NativeCode, NeverRunsForAnotherProgram) {
  const auto graph = [](const char* op) {
    Graph g;
    g.outputs = {g.op(op).input(g.op("Abs").input(input(g, {64})))};
    g.output_names = {"y"};
    return g;
  };
  // The whole code section of one archive, genuine and trusted, in the place of another's.
  const CompileOptions options{.targets = {"x86-64-v2"}, .key = key_};
  std::vector<std::byte> other;
  with_section(*compile(graph("Floor"), options), SectionKind::code,
               [&](auto code) { other.assign(code.begin(), code.end()); });
  const auto mixed =
      with_section(*compile(graph("Ceil"), options), SectionKind::code, [&](auto code) {
        ASSERT_EQ(code.size(), other.size());
        std::ranges::copy(other, code.begin());
      });
  const auto session = open(mixed, trusting(key_));
  ASSERT_TRUE(session);
  EXPECT_FALSE(session->has_native_code());
}

TEST_F(NativeCode, GivesTheSameBitsForEveryNumberOfThreads) {
  Graph g;
  const ValueId x = input(g, {3, 100001});
  g.outputs = {g.op("Tanh").input(g.op("Exp").input(g.op("Mul").input(x).input(input(g, {3, 1}))))};
  g.output_names = {"y"};
  auto session = open(*compile(std::move(g), {.key = key_}), trusting(key_));
  ASSERT_TRUE(session && session->has_native_code());
  const std::vector inputs{Value(drawn(DType::f32, {3, 100001})), Value(drawn(DType::f32, {3, 1}))};
  std::vector<Value> first;
  for (unsigned threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    session->use(pool);
    const auto results = session->run(inputs);
    ASSERT_TRUE(results);
    if (first.empty()) first = *results;
    EXPECT_EQ(std::memcmp(first[0].tensor.data, (*results)[0].tensor.data, first[0].tensor.bytes()),
              0)
        << threads;
  }
}

}  // namespace
}  // namespace hologram::compiler
