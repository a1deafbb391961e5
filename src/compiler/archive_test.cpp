// Archives that are damaged or hostile: an error that says what is wrong, never a crash.
#include "archive/archive.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "archive/kernels.h"
#include "archive/layout.h"
#include "compiler/lower.h"
#include "compiler/test_session.h"
#include "graph/passes/resolve.h"

namespace hologram::compiler {
namespace {

using archive::Entry;
using archive::Header;
using archive::ModelT;
using archive::Storage;
using graph::Graph;
using graph::ValueId;
using kernels::Tensor;
using kernels::Value;
using testing::AnyOf;
using testing::HasSubstr;

// Two programs, a kernel, a view, constants; symbolic where asked.
Graph network(bool symbolic) {
  Graph g;
  g.name = "network";
  const ValueId x = add_input(g, "x", {symbolic ? symbol("n") : Dim(4), 6});
  ValueId y = g.op("MatMul").input(x).input(g.add_constant(varied({6, 8}), "w"));
  y = g.op("Add").input(y).input(g.add_constant(varied({8}), "b"));
  y = g.op("Reshape").input(y).input(g.constant(std::vector<int64_t>{-1, 4}));
  y = g.op("Softmax").input(y).attribute("axis", -1);
  y = g.op("Mul").input(y).input(y);
  ValueId z = g.op("NonZero").input(y);  // in memory of its own
  g.outputs = {y, g.op("Transpose").input(z).attribute("perm", std::vector<int64_t>{1, 0})};
  g.output_names = {"y", "z"};
  EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
  return g;
}

const std::vector<Value>& inputs() {
  static const std::vector<Value> all{Value(varied({4, 6}))};
  return all;
}

// Opening, or the first run.
Status open_and_run(const std::vector<std::byte>& bytes) {
  HOLOGRAM_TRY(const runtime::Session session, open_bytes(bytes));
  HOLOGRAM_CHECK(session.run(inputs()));
  return {};
}

void expect_refused(const std::vector<std::byte>& bytes, const std::string& what) {
  const Status status = open_and_run(bytes);
  ASSERT_FALSE(status.has_value()) << what;
  EXPECT_THAT(status.error().code(), AnyOf(ErrorCode::corrupt, ErrorCode::unsupported)) << what;
  EXPECT_FALSE(status.error().message().empty()) << what;
}

TEST(Archive, EveryFlippedByteIsAnError) {
  for (bool symbolic : {false, true}) {
    std::vector<std::byte> bytes = *compile(network(symbolic));
    ASSERT_TRUE(open_and_run(bytes).has_value());
    for (size_t at = 0; at < bytes.size(); ++at)
      for (std::byte flip : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}}) {
        bytes[at] ^= flip;
        expect_refused(bytes, "byte " + std::to_string(at));
        bytes[at] ^= flip;
      }
  }
}

TEST(Archive, EveryTruncationIsAnError) {
  const std::vector<std::byte> bytes = *compile(network(false));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(open_bytes({bytes.begin(), bytes.begin() + static_cast<int64_t>(size)}));
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(open_bytes(longer));
}

// Of a file the head is read and the rest is mapped: what is damaged in either is found, as is a
// file that ends there.
TEST(Archive, FilesAreCheckedAsBytesAre) {
  // Heads that are read at once, that are read in two parts, and that are mapped.
  const auto chain = [](int length) {
    Graph chain;
    ValueId y = add_input(chain, "x", {4, 6});
    for (int i = 0; i < length; ++i) y = chain.op("Relu").input(y);
    chain.outputs = {chain.op("MatMul").input(y).input(chain.add_constant(varied({6, 8}), "w"))};
    chain.output_names = {"y"};
    return *compile(std::move(chain), {.optimise = false});
  };
  const auto path = std::filesystem::temp_directory_path() /
                    ("hologram_archive_" + std::to_string(getpid()) + ".holo");
  for (const std::vector<std::byte>& good : {*compile(network(false)), chain(150), chain(1500)}) {
    const auto open_file = [&](const std::vector<std::byte>& bytes) -> Status {
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
      HOLOGRAM_TRY(const runtime::Session session, runtime::Session::open(path));
      HOLOGRAM_CHECK(session.run(inputs()));
      return {};
    };
    EXPECT_TRUE(open_file(good).has_value());
    const size_t step = good.size() / 97 | 1;
    for (size_t at = 0; at < good.size(); at += step) {
      std::vector<std::byte> bytes = good;
      bytes[at] ^= std::byte{0x10};
      const Status flipped = open_file(bytes);
      ASSERT_FALSE(flipped.has_value()) << "byte " << at;
      EXPECT_THAT(flipped.error().code(), AnyOf(ErrorCode::corrupt, ErrorCode::unsupported));
      bytes.assign(good.begin(), good.begin() + static_cast<ptrdiff_t>(at));
      EXPECT_FALSE(open_file(bytes).has_value()) << at << " bytes";
    }
    EXPECT_TRUE(open_file(good).has_value());
  }
  std::filesystem::remove(path);
}

// The archive with its header and table changed and their hashes set right.
std::vector<std::byte> resealed(const std::function<void(Header&, std::vector<Entry>&)>& change) {
  std::vector<std::byte> bytes = *compile(network(false));
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::vector<Entry> entries(header.section_count);
  const size_t table = header.table_offset, table_size = entries.size() * sizeof(Entry);
  std::memcpy(entries.data(), bytes.data() + table, table_size);
  change(header, entries);
  std::memcpy(bytes.data() + table, entries.data(), table_size);
  header.table_hash = hash128(std::as_bytes(std::span(entries)));
  header.hash = archive::header_hash(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

TEST(Archive, RefusesHostileHeadersAndTables) {
  EXPECT_TRUE(open_and_run(resealed([](auto&, auto&) {})).has_value());
  const std::vector<std::function<void(Header&, std::vector<Entry>&)>> changes = {
      [](Header& h, auto&) { h.magic = 0x46464952; },
      [](Header& h, auto&) { h.version = 1; },
      [](Header& h, auto&) { h.version = 77; },
      [](Header& h, auto&) { h.file_size += 1; },
      [](Header& h, auto&) { h.section_count = ~uint64_t{0}; },
      [](Header& h, auto&) { h.section_count = uint64_t{1} << 60; },
      [](Header& h, auto&) { h.section_count = 0; },
      [](Header& h, auto&) { h.table_offset = ~uint64_t{0} - 10; },
      [](Header& h, auto&) { h.table_offset = 0; },
      [](auto&, auto& e) { e[0].offset = ~uint64_t{0} - 63; },
      [](auto&, auto& e) { e[0].size = ~uint64_t{0}; },
      [](auto&, auto& e) { e[0].offset += 64; },
      [](auto&, auto& e) { e[1].offset = e[0].offset; },
      [](auto&, auto& e) { e[1].size += uint64_t{1} << 40; },
      [](auto&, auto& e) { e[1].size -= 64; },
      [](auto&, auto& e) { e[0].kind = archive::SectionKind::constants; },
      [](auto&, auto& e) { e[1].kind = archive::SectionKind::plan; },
      [](auto&, auto& e) { std::swap(e[0], e[1]); },
  };
  for (size_t i = 0; i < changes.size(); ++i)
    expect_refused(resealed(changes[i]), "change " + std::to_string(i));
}

// The value that the step of a kernel makes.
uint32_t made_by(const ModelT& m, std::string_view kernel) {
  for (const auto& step : m.plan->steps)
    if (step->kernel == kernel) return step->outputs[0];
  ADD_FAILURE() << "no step " << kernel;
  return 0;
}
archive::TypeT& type_of(ModelT& m, uint32_t value) { return *m.types[m.plan->values[value]->type]; }
size_t step_of(const ModelT& m, std::string_view kernel) {
  for (size_t i = 0; i < m.plan->steps.size(); ++i)
    if (m.plan->steps[i]->kernel == kernel) return i;
  ADD_FAILURE() << "no step " << kernel;
  return 0;
}

TEST(Archive, RefusesHostilePlans) {
  using Change = std::function<void(ModelT&)>;
  const std::vector<std::pair<const char*, Change>> changes = {
      {"a value that does not exist", [](ModelT& m) { m.plan->steps[0]->inputs[0] = 1000; }},
      {"a value that does not exist", [](ModelT& m) { m.plan->steps[1]->outputs[0] = 1000; }},
      {"a value that does not exist", [](ModelT& m) { m.plan->outputs[0] = 0xfffffffe; }},
      {"a value that does not exist", [](ModelT& m) { m.plan->steps[0]->release = {99999}; }},
      {"reads what nothing made", [](ModelT& m) { m.plan->steps[0]->outputs[0] = 0xffffffff; }},
      {"an output left out", [](ModelT& m) { m.plan->steps[0]->outputs.push_back(0xffffffff); }},
      {"reads what nothing made", [](ModelT& m) { std::swap(m.plan->steps[0], m.plan->steps[1]); }},
      {"reads what nothing made",
       [](ModelT& m) { m.plan->steps[0]->release = {m.plan->steps[0]->outputs[0]}; }},
      {"an output that nothing made", [](ModelT& m) { m.plan->steps.resize(1); }},
      {"a program that does not exist",
       [](ModelT& m) { m.plan->steps[step_of(m, "Mul")]->program = 7; }},
      {"a program with other", [](ModelT& m) { m.plan->steps[step_of(m, "Mul")]->program = 0; }},
      {"no kernel 'Exfiltrate'",
       [](ModelT& m) { m.plan->steps[step_of(m, "Softmax")]->kernel = "Exfiltrate"; }},
      {"a step without a kernel", [](ModelT& m) { m.plan->steps[0]->kernel.clear(); }},
      {"an unknown kind of step",
       [](ModelT& m) {
         m.plan->steps[step_of(m, "Mul")]->kind = static_cast<archive::StepKind>(9);
       }},
      {"a constant that does not exist",
       [](ModelT& m) {
         for (auto& v : m.plan->values)
           if (v->storage == Storage::constant) v->constant = 55;
       }},
      {"writes what is not its own",
       [](ModelT& m) {
         auto& v = *m.plan->values[made_by(m, "Softmax")];
         v.storage = Storage::constant;
         v.constant = 0;
       }},
      {"writes what is not its own",
       [](ModelT& m) {  // a kernel that would write over what it reads
         auto& v = *m.plan->values[made_by(m, "Softmax")];
         v.storage = Storage::view;
         v.source = static_cast<int32_t>(m.plan->steps[step_of(m, "Softmax")]->inputs[0]);
       }},
      {"a view of a value that does not exist",
       [](ModelT& m) { m.plan->values[made_by(m, "Reshape")]->source = 4000; }},
      {"an unknown storage",
       [](ModelT& m) { m.plan->values[made_by(m, "Mul")]->storage = static_cast<Storage>(77); }},
      {"an unknown element type", [](ModelT& m) { type_of(m, made_by(m, "Mul")).dtype = 250; }},
      {"a value without a type", [](ModelT& m) { m.plan->values[0]->type = 5000; }},
      {"a value without a type", [](ModelT& m) { m.types[0]->kind = 0; }},
      {"a value without a type", [](ModelT& m) { m.types.clear(); }},
      {"too many dimensions",
       [](ModelT& m) { type_of(m, 0).dims.resize(20, archive::Dim(1, -1, -1)); }},
      {"a constant of impossible shape",
       [](ModelT& m) {
         m.constants[0]->dims = {int64_t{1} << 40, int64_t{1} << 40};
       }},
      {"a constant of impossible shape",
       [](ModelT& m) {
         m.constants[0]->dims = {-3, -4};
       }},
      {"a constant of impossible shape",
       [](ModelT& m) {
         m.constants[0]->dims = {0, int64_t{1} << 40, int64_t{1} << 40};
         m.constants[0]->size = 0;
       }},
      {"a constant outside its section",
       [](ModelT& m) {
         m.constants[0]->dims = {1 << 20, 9};
       }},
      {"a malformed constant", [](ModelT& m) { m.constants[0]->dtype = 200; }},
      {"an expression of what comes later",
       [](ModelT& m) { m.expressions.emplace_back(0, 100000, 100000, archive::Operation::add); }},
      {"a dimension without its expression",
       [](ModelT& m) { type_of(m, 0).dims[0] = archive::Dim(0, -1, 5000); }},
      {"a dimension without its text",
       [](ModelT& m) { type_of(m, 0).dims[0] = archive::Dim(0, 5000, -1); }},
      {"a dimension without its text",
       [](ModelT& m) { type_of(m, 0).dims[0] = archive::Dim(0, -2, -1); }},
      {"a size without its expression",
       [](ModelT& m) { m.plan->values[made_by(m, "Softmax")]->elements = 5000; }},
      {"a symbol that no input binds", [](ModelT& m) { m.symbols.push_back("lonely"); }},
      {"a constant of another type",
       [](ModelT& m) {
         m.types.push_back(std::make_unique<archive::TypeT>());
         m.types.back()->kind = 1;
         m.types.back()->dtype = 3;
         for (auto& v : m.plan->values)
           if (v->storage == Storage::constant) v->type = static_cast<uint32_t>(m.types.size() - 1);
       }},
      {"a capture of nothing", [](ModelT& m) { m.plan->values[0]->storage = Storage::capture; }},
      {"an input that is something else",
       [](ModelT& m) { m.plan->values[m.plan->inputs[0]]->storage = Storage::pool; }},
      {"a value made twice",
       [](ModelT& m) { m.plan->steps.back()->outputs = m.plan->steps[0]->outputs; }},
      {"is left out",
       [](ModelT& m) { m.plan->steps[step_of(m, "Softmax")]->inputs[0] = 0xffffffff; }},
  };
  for (bool symbolic : {false, true})
    for (const auto& [message, change] : changes) {
      Graph g = network(symbolic);
      ASSERT_TRUE(graph::resolve(g).has_value());
      auto lowered = lower(g);
      ASSERT_TRUE(lowered.has_value());
      change(lowered->model);
      const auto bytes = archive::write(lowered->model, lowered->constant_bytes());
      ASSERT_TRUE(bytes.has_value());
      const Status status = open_and_run(*bytes);
      ASSERT_FALSE(status.has_value()) << message;
      EXPECT_THAT(status.error().to_string(), HasSubstr(message));
    }
}

TEST(Archive, RefusesHostileMemoryPlans) {
  const auto refused = [](bool symbolic, const char* message,
                          const std::function<void(archive::PlanT&)>& change) {
    Graph g = network(symbolic);
    ASSERT_TRUE(graph::resolve(g).has_value());
    auto lowered = lower(g);
    change(*lowered->model.plan);
    const Status status = open_and_run(*archive::write(lowered->model, lowered->constant_bytes()));
    ASSERT_FALSE(status.has_value()) << message;
    EXPECT_THAT(status.error().to_string(), HasSubstr(message));
  };
  const auto planned = [](archive::PlanT& plan) -> archive::ValueT& {
    for (auto& value : plan.values)
      if (value->storage == Storage::arena) return *value;
    return *plan.values[0];
  };
  refused(false, "outside the arena", [&](auto& p) { planned(p).offset = uint64_t{1} << 50; });
  refused(false, "outside the arena", [&](auto& p) { planned(p).size = ~uint64_t{0}; });
  refused(false, "outside the arena", [&](auto& p) { planned(p).offset = 4; });
  refused(false, "outside the arena", [&](auto& p) { p.arena = 0; });
  refused(false, "impossible size", [&](auto& p) { p.arena = ~uint64_t{0}; });
  refused(false, "bytes were planned", [&](auto& p) {
    for (auto& value : p.values) value->size /= 2;
  });
  // Everything in one place: what is still needed would be written over.
  refused(false, "lie on one another", [&](auto& p) {
    for (auto& value : p.values) value->offset = 0;
  });
  refused(true, "lie on one another", [&](auto& p) {
    for (auto& block : p.blocks) block->beside.clear();
  });
  refused(true, "of one block at the same time", [&](auto& p) {
    for (auto& value : p.values)
      if (value->storage == Storage::arena) value->block = 0;
  });
  refused(true, "outside the blocks", [&](auto& p) { planned(p).block = 1000; });
  refused(true, "outside the blocks", [&](auto& p) { planned(p).block = -1; });
  refused(true, "beside a later one", [&](auto& p) { p.blocks[0]->beside = {0}; });
  refused(true, "without blocks", [&](auto& p) { p.blocks.clear(); });
}

// Operands that are made inside the result of a Concat, and nothing else that lies on another.
TEST(Archive, LetsOnlyPartsOfAConcatLieInIt) {
  Graph g;
  g.name = "joined";
  const ValueId x = add_input(g, "x", {4, 6});
  std::vector<ValueId> parts;
  for (int i = 0; i < 3; ++i)
    parts.push_back(g.op("MatMul").input(x).input(g.add_constant(varied({6, 16}), "w")));
  const ValueId pair = g.op("Concat").inputs(std::span(parts).first(2)).attribute("axis", 0);
  const ValueId sum = g.op("Softmax").input(pair).attribute("axis", 0);
  const ValueId all = g.op("Concat").inputs(parts).attribute("axis", 0);
  g.outputs = {g.op("MatMul").input(all).input(g.add_constant(varied({16, 3}), "v")), sum};
  g.output_names = {"y", "z"};
  ASSERT_TRUE(g.status().has_value()) << g.status().error().to_string();
  ASSERT_TRUE(graph::resolve(g).has_value());
  const auto changed = [&](const std::function<void(archive::PlanT&)>& change) {
    auto lowered = lower(g);
    change(*lowered->model.plan);
    return open_and_run(*archive::write(lowered->model, lowered->constant_bytes()));
  };
  const auto good = changed([&](archive::PlanT& p) {
    const uint64_t start = p.values[all]->offset;
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(p.values[parts[i]]->offset, start + 256 * i);
    EXPECT_EQ(p.values[pair]->offset, start);
    EXPECT_NE(p.values[sum]->offset, start);
  });
  EXPECT_TRUE(good.has_value()) << good.error().to_string();
  const auto refused = [&](const std::function<void(archive::PlanT&)>& change) {
    const Status status = changed(change);
    ASSERT_FALSE(status.has_value());
    EXPECT_THAT(status.error().to_string(), HasSubstr("lie on one another"));
  };
  refused([&](auto& p) { std::swap(p.values[parts[0]]->offset, p.values[parts[1]]->offset); });
  refused([&](auto& p) { p.values[parts[2]]->offset -= 64; });
  refused([&](auto& p) { p.values[sum]->offset = p.values[all]->offset + 256; });
  refused([&](auto& p) {
    for (auto& step : p.steps)
      if (step->kernel == "Concat") step->attributes[0]->integer = 1;
  });
  refused([&](auto& p) {
    for (auto& step : p.steps)
      if (step->kernel == "Concat") step->kernel = "Sum";
  });
}

// Of an archive with one section, its hashes mended.
void change_entry(std::span<std::byte> bytes, const std::function<void(Entry&)>& change) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  Entry entry;
  std::memcpy(&entry, bytes.data() + header.table_offset, sizeof(entry));
  change(entry);
  entry.hash = archive::section_hash(bytes.subspan(entry.offset, entry.size));
  std::memcpy(bytes.data() + header.table_offset, &entry, sizeof(entry));
  header.table_hash = hash128(std::as_bytes(std::span(&entry, 1)));
  header.hash = archive::header_hash(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
}

TEST(Archive, RefusesMemoryThatLiesAskew) {
  const std::vector<std::byte> bytes = archive::write_kernels({});
  auto owner = std::make_shared<AlignedBytes>(*AlignedBytes::allocate(bytes.size() + 8));
  std::ranges::copy(bytes, owner->data() + 8);
  const auto opened = archive::Archive::open({owner->data() + 8, bytes.size()}, owner);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::invalid_argument);
}

// Plans inside plans that share their parts: few bytes, endless to walk.
TEST(Archive, RefusesPlansThatUnfoldWithoutEnd) {
  flatbuffers::FlatBufferBuilder builder;
  auto plan = archive::CreatePlan(builder);
  for (int depth = 0; depth < 40; ++depth) {
    const auto name = builder.CreateString("then_branch"), kernel = builder.CreateString("If");
    const auto subplan = archive::CreateSubplan(builder, name, plan);
    const std::vector both{subplan, subplan};
    const auto subplans = builder.CreateVector(both);
    const auto step =
        archive::CreateStep(builder, archive::StepKind::control, 0, kernel, -1, 0, 0, 0, subplans);
    const auto steps = builder.CreateVector(std::vector{step});
    plan = archive::CreatePlan(builder, 0, 0, 0, 0, 0, steps);
  }
  builder.Finish(archive::CreateModel(builder, 0, plan));
  std::vector<std::byte> bytes = archive::write_kernels(
      std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())));
  change_entry(bytes, [](Entry& entry) { entry.kind = archive::SectionKind::plan; });
  expect_refused(bytes, "a plan that unfolds");
}

}  // namespace
}  // namespace hologram::compiler
