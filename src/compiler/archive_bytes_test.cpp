// What an archive's bytes must be beside whole: numbers where their size allows, bools 0 or 1, and
// blocks of constants that are what their hashes say.
#include <filesystem>
#include <functional>

#include "archive/layout.h"
#include "compiler/test_session.h"
#include "support/file.h"

namespace hologram::compiler {
namespace {

using archive::Entry;
using archive::Header;
using archive::SectionKind;
using graph::Graph;
using graph::ValueId;
using kernels::Tensor;
using kernels::Value;
using testing::HasSubstr;

Header header_of(std::span<const std::byte> bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}
std::vector<Entry> entries_of(std::span<const std::byte> bytes) {
  std::vector<Entry> entries(header_of(bytes).section_count);
  std::memcpy(entries.data(), bytes.data() + header_of(bytes).table_offset,
              entries.size() * sizeof(Entry));
  return entries;
}
Entry section(std::span<const std::byte> bytes, SectionKind kind) {
  for (const Entry& entry : entries_of(bytes))
    if (entry.kind == kind) return entry;
  ADD_FAILURE() << "no section " << static_cast<uint32_t>(kind);
  return {};
}

// With these entries, and every hash set right.
void seal(std::vector<std::byte>& bytes, std::vector<Entry> entries) {
  for (Entry& entry : entries)
    entry.hash = archive::section_hash(std::span(bytes).subspan(entry.offset, entry.size));
  Header header = header_of(bytes);
  std::memcpy(bytes.data() + header.table_offset, entries.data(), entries.size() * sizeof(Entry));
  header.table_hash = hash128(std::as_bytes(std::span(entries)));
  header.hash = archive::header_hash(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
}

std::string refusal(const std::vector<std::byte>& bytes, const std::vector<Value>& inputs) {
  const auto session = open_bytes(bytes);
  if (!session) return session.error().to_string();
  const auto results = session->run(inputs);
  return results ? "" : results.error().to_string();
}

// The plan moved by `shift` bytes and the table, which lies behind it, by 64, with right hashes.
std::vector<std::byte> with_plan_moved(const std::vector<std::byte>& good, size_t shift) {
  std::vector<std::byte> bytes = good;
  std::vector<Entry> entries = entries_of(bytes);
  EXPECT_EQ(entries[0].kind, SectionKind::plan);
  Header header = header_of(bytes);
  const size_t table_bytes = entries.size() * sizeof(Entry);
  EXPECT_LE(header.table_offset + table_bytes + 64, entries[1].offset);
  std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(header.table_offset), table_bytes,
              std::byte{0});
  header.table_offset += 64;
  std::memcpy(bytes.data(), &header, sizeof(header));
  const auto from = bytes.begin() + static_cast<ptrdiff_t>(entries[0].offset);
  const auto end = from + static_cast<ptrdiff_t>(entries[0].size);
  std::copy_backward(from, end, end + static_cast<ptrdiff_t>(shift));
  std::fill_n(from, shift, std::byte{0});
  entries[0].offset += shift;
  seal(bytes, std::move(entries));
  return bytes;
}

TEST(ArchiveBytes, NumbersThatLieAskewAreRefused) {
  Graph fixed, symbolic;
  ValueId x = add_input(fixed, "x", {2, 3});
  const ValueId y = fixed.op("Transpose").input(x).attribute("perm", std::vector<int64_t>{1, 0});
  fixed.outputs = {fixed.op("MatMul").input(y).input(fixed.add_constant(varied({2, 2}), "w"))};
  fixed.output_names = {"y"};
  x = add_input(symbolic, "x", {symbol("n"), 3});
  symbolic.outputs = {symbolic.op("CumSum").input(x).input(symbolic.constant(int64_t{0}))};
  symbolic.output_names = {"y"};
  for (Graph* g : {&fixed, &symbolic}) {
    const std::vector<std::byte> good = *compile(std::move(*g));
    const std::vector inputs{Value(varied({2, 3}))};
    EXPECT_EQ(refusal(good, inputs), "");
    EXPECT_EQ(refusal(with_plan_moved(good, 64), inputs), "");  // as good a place as before
    for (size_t shift : {1, 4, 8, 32})
      EXPECT_THAT(refusal(with_plan_moved(good, shift), inputs),
                  HasSubstr("does not begin at a multiple of 64 bytes"));
  }
}

TEST(ArchiveBytes, BoolsThatAreNeitherZeroNorOneAreRefused) {
  Graph g;
  const ValueId x = add_input(g, "x", {4}, DType::boolean);
  Tensor mask = *Tensor::allocate(DType::boolean, {4});
  for (int i = 0; i < 4; ++i) mask.as<bool>()[i] = i % 2 == 0;
  g.outputs = {g.op("Xor").input(x).input(g.add_constant(mask, "mask"))};
  g.output_names = {"y"};
  const std::vector<std::byte> good = *compile(std::move(g));
  Tensor zeros = *Tensor::allocate(DType::boolean, {4});
  std::memset(zeros.data, 0, 4);
  const std::vector inputs{Value(zeros)};
  EXPECT_EQ(refusal(good, inputs), "");
  const Entry constants = section(good, SectionKind::constants);
  for (const int value : {2, 0x80, 0xff}) {
    std::vector<std::byte> bytes = good;
    bytes[constants.offset + 2] = static_cast<std::byte>(value);
    seal(bytes, entries_of(bytes));
    EXPECT_THAT(refusal(bytes, inputs), HasSubstr("neither 0 nor 1")) << value;
  }
}

TEST(ArchiveBytes, EveryBlockOfTheConstantsIsChecked) {
  Graph g;
  const ValueId x = add_input(g, "x", {1, 600});
  const ValueId used = g.op("MatMul").input(x).input(g.add_constant(varied({600, 1000}), "w"));
  g.outputs = {g.op("Add").input(used).input(g.add_constant(varied({1, 1000}, 7), "b"))};
  g.output_names = {"y"};
  const std::vector<std::byte> good = *compile(std::move(g));
  const std::vector inputs{Value(varied({1, 600}))};
  EXPECT_EQ(refusal(good, inputs), "");
  const Entry constants = section(good, SectionKind::constants);
  const Entry hashes = section(good, SectionKind::hashes);
  ASSERT_GT(constants.size, 2 * archive::kHashBlock);
  EXPECT_EQ(hashes.size, archive::block_count(constants.size) * sizeof(Hash128));
  for (uint64_t at = 0; at < constants.size; at += archive::kHashBlock / 2) {
    std::vector<std::byte> bytes = good;
    bytes[constants.offset + at] ^= std::byte{1};
    EXPECT_THAT(refusal(bytes, inputs), HasSubstr("section 2 is damaged")) << at;
  }
  for (uint64_t at = 0; at < hashes.size; at += 8) {
    std::vector<std::byte> bytes = good;
    bytes[hashes.offset + at] ^= std::byte{1};
    EXPECT_THAT(refusal(bytes, inputs), HasSubstr("section 6 is damaged")) << at;
  }
  // Hashes of other constants.
  std::vector<std::byte> bytes = good;
  bytes[hashes.offset] ^= std::byte{1};
  std::vector<Entry> entries = entries_of(bytes);
  const auto right = section(bytes, SectionKind::constants).hash;
  seal(bytes, entries);
  entries = entries_of(bytes);
  EXPECT_EQ(section(bytes, SectionKind::constants).hash, right);
  EXPECT_THAT(refusal(bytes, inputs), HasSubstr("section 6 is damaged"));
}

// From a file, whose pages are brought in before a step: the second step finds all of its block
// checked, and the block is the last and not a whole one.
TEST(ArchiveBytes, StepsShareTheLastBlockOfAFile) {
  Graph g;
  const ValueId x = add_input(g, "x", {1, 600});
  const ValueId middle = g.op("MatMul").input(x).input(g.add_constant(varied({600, 600}), "a"));
  g.outputs = {g.op("MatMul").input(middle).input(g.add_constant(varied({600, 60}, 7), "b"))};
  g.output_names = {"y"};
  const std::vector<std::byte> bytes = *compile(std::move(g));
  const Entry constants = section(bytes, SectionKind::constants);
  ASSERT_EQ(archive::block_count(constants.size), 2u);
  const auto path = std::filesystem::path(testing::TempDir()) / "last_block.holo";
  ASSERT_TRUE(write_file(path, bytes).has_value());
  const std::vector inputs{Value(varied({1, 600}))};
  const auto expected = open_bytes(bytes)->run(inputs);
  for (unsigned threads : {1u, 2u}) {
    ThreadPool pool(threads);
    auto session = runtime::Session::open(path);
    ASSERT_TRUE(session.has_value()) << session.error().to_string();
    session->use(pool);
    const auto results = session->run(inputs);
    ASSERT_TRUE(results.has_value()) << results.error().to_string();
    EXPECT_TRUE(same_bits(results->at(0).tensor, expected->at(0).tensor));
  }
  std::filesystem::remove(path);
}

// What exporters write although it goes without saying is not there to be checked.
TEST(ArchiveBytes, ConvolutionsLeaveOutWhatGoesWithoutSaying) {
  const auto convolution = [](bool said, int64_t stride) {
    Graph g;
    const ValueId x = add_input(g, "x", {1, 3, 8, 8});
    auto&& conv = g.op("Conv");
    conv.input(x).input(g.add_constant(varied({4, 3, 3, 3}), "w"));
    if (said || stride != 1) conv.attribute("strides", std::vector<int64_t>{stride, stride});
    if (said)
      conv.attribute("auto_pad", "NOTSET")
          .attribute("dilations", std::vector<int64_t>{1, 1})
          .attribute("group", int64_t{1})
          .attribute("pads", std::vector<int64_t>{0, 0, 0, 0});
    g.outputs = {conv};
    g.output_names = {"y"};
    return *compile(std::move(g));
  };
  EXPECT_EQ(convolution(true, 1), convolution(false, 1));
  EXPECT_EQ(convolution(true, 2), convolution(false, 2));
  const std::vector inputs{Value(varied({1, 3, 8, 8}))};
  EXPECT_EQ(open_bytes(convolution(true, 2))->run(inputs)->at(0).tensor.dims,
            (kernels::Dims{1, 4, 3, 3}));
}

// Opening reads what it checks; the constants are mapped by the first run, from the same file.
TEST(ArchiveBytes, ConstantsAreMappedFromTheFileThatWasOpened) {
  Graph g;
  const ValueId x = add_input(g, "x", {1, 60});
  g.outputs = {g.op("MatMul").input(x).input(g.add_constant(varied({60, 600}), "w"))};
  g.output_names = {"y"};
  const std::vector<std::byte> bytes = *compile(std::move(g));
  const auto path = std::filesystem::path(testing::TempDir()) / "mapped_later.holo";
  const std::vector inputs{Value(varied({1, 60}))};
  const auto expected = open_bytes(bytes)->run(inputs);
  ASSERT_TRUE(write_file(path, bytes).has_value());
  const auto replaced = *runtime::Session::open(path);
  const auto removed = *runtime::Session::open(path);
  ASSERT_TRUE(write_file(path, std::string_view("another file")).has_value());
  EXPECT_TRUE(same_bits(replaced.run(inputs)->at(0).tensor, expected->at(0).tensor));
  std::filesystem::remove(path);
  EXPECT_TRUE(same_bits(removed.run(inputs)->at(0).tensor, expected->at(0).tensor));
  // The same file, made shorter: not a crash.
  ASSERT_TRUE(write_file(path, bytes).has_value());
  const auto shortened = *runtime::Session::open(path);
  std::filesystem::resize_file(path, bytes.size() - 4096);
  for (int i = 0; i < 2; ++i) {
    const auto run = shortened.run(inputs);
    ASSERT_FALSE(run.has_value());
    EXPECT_EQ(run.error().code(), ErrorCode::io_error);
  }
  std::filesystem::remove(path);
}

// Constants may be checked after they are read: a step that fails by them does not say so itself.
TEST(ArchiveBytes, StepsThatFailByDamagedConstantsNameTheDamage) {
  Graph g;
  const ValueId x = add_input(g, "x", {1, 600});
  const ValueId w =
      g.add_constant(tensor<float>({600, 1000}, std::vector<float>(600'000, 1e-3f)), "w");
  const ValueId product = g.op("MatMul").input(x).input(w);
  const ValueId index =
      g.op("Cast").input(product).attribute("to", static_cast<int64_t>(DType::i64));
  g.outputs = {g.op("Gather").input(add_input(g, "data", {2})).input(index)};
  g.output_names = {"y"};
  const std::vector<std::byte> good = *compile(std::move(g));
  const std::vector inputs{Value(tensor<float>({1, 600}, std::vector<float>(600, 1.0f))),
                           Value(varied({2}))};
  EXPECT_EQ(refusal(good, inputs), "");
  const Entry constants = section(good, SectionKind::constants);
  for (uint64_t at : {uint64_t{3}, constants.size / 2 / 64 * 64 + 3}) {
    std::vector<std::byte> bytes = good;
    bytes[constants.offset + at] ^= std::byte{0x40};  // the exponent's highest bit
    EXPECT_THAT(refusal(bytes, inputs), HasSubstr("section 2 is damaged")) << at;
  }
}

}  // namespace
}  // namespace hologram::compiler
