#include "case.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include "compare.h"
#include "compiler/compile.h"
#include "compiler/count_allocations.h"
#include "onnx/model.h"
#include "onnx/proto.h"
#include "onnx/tensor.h"
#include "runtime/session/session.h"
#include "support/aligned.h"
#include "support/file.h"

namespace hologram::conformance {
namespace {

namespace fs = std::filesystem;
using graph::ValueType;
using kernels::Value;
using runtime::PortInfo;
using runtime::Session;

Tolerance tolerance_of(const fs::path& folder) {
  Tolerance tolerance;
  std::ifstream file(folder / "tolerance");
  if (file) file >> tolerance.relative >> tolerance.absolute;
  return tolerance;
}

// Ports as the model declares them: sequences of sequences are not in a PortInfo.
Result<std::pair<std::vector<ValueType>, std::vector<ValueType>>> declared_types(
    const fs::path& model) {
  HOLOGRAM_TRY(FileMap map, FileMap::open(model));
  const auto proto =
      onnx::read_model_proto({reinterpret_cast<const char*>(map.bytes().data()), map.size()});
  std::pair<std::vector<ValueType>, std::vector<ValueType>> result;
  std::set<std::string_view> initialised;
  for (const auto& t : proto.graph.initializers) initialised.insert(t.name);
  for (const auto& v : proto.graph.inputs) {
    if (initialised.contains(v.name)) continue;
    HOLOGRAM_TRY(ValueType type, onnx::read_type(v.type));
    result.first.push_back(std::move(type));
  }
  for (const auto& v : proto.graph.outputs) {
    HOLOGRAM_TRY(ValueType type, onnx::read_type(v.type));
    result.second.push_back(std::move(type));
  }
  return result;
}

Result<std::vector<Value>> read_values(const fs::path& set, const char* prefix,
                                       const std::vector<ValueType>& types) {
  std::vector<Value> values;
  for (size_t i = 0; i < types.size(); ++i) {
    const fs::path file = set / (prefix + std::to_string(i) + ".pb");
    if (!fs::exists(file)) return fail(ErrorCode::not_found, "no {}", file.string());
    HOLOGRAM_TRY(Value value, onnx::read_value_file(file, types[i]));
    // The suite of ONNX 1.12 stores bf16 as its bits.
    if (types[i].is_tensor() && types[i].dtype == DType::bf16 && value.is_tensor() &&
        value.tensor.dtype == DType::u16)
      value.tensor.dtype = DType::bf16;
    values.push_back(std::move(value));
  }
  return values;
}

// Running again what has run allocates for the results alone, which are the caller's.
Status check_allocations(const Session& session, const std::vector<Value>& inputs,
                         const std::vector<Value>& results) {
#ifndef HOLOGRAM_SANITIZED  // allocates for itself
  int64_t before = compiler::allocations();
  std::vector<Value> copies(results.size());
  for (size_t i = 0; i < copies.size(); ++i) {
    HOLOGRAM_TRY(copies[i], results[i].clone());
  }
  const int64_t for_results = compiler::allocations() - before;
  before = compiler::allocations();
  HOLOGRAM_TRY(const auto again, session.run(inputs));
  const int64_t made = compiler::allocations() - before - for_results;
  if (made != 0) return fail(ErrorCode::internal, "a later run allocates {} times", made);
#endif
  return {};
}

Status run_sets(const fs::path& folder, const Session& session) {
  HOLOGRAM_TRY(auto types, declared_types(folder / "model.onnx"));
  const Tolerance tolerance = tolerance_of(folder);
  // The libraries that decode pictures allocate as they like.
  const bool counts = std::ranges::count(operators_of(folder), "ImageDecoder") == 0;
  int sets = 0;
  for (int set = 0; fs::exists(folder / ("test_data_set_" + std::to_string(set))); ++set, ++sets) {
    const fs::path data = folder / ("test_data_set_" + std::to_string(set));
    HOLOGRAM_TRY(const auto inputs, read_values(data, "input_", types.first));
    HOLOGRAM_TRY(const auto expected, read_values(data, "output_", types.second));
    HOLOGRAM_TRY(const auto actual, session.run(inputs));
    if (actual.size() != expected.size())
      return fail(ErrorCode::shape_mismatch, "{} outputs where {} are expected", actual.size(),
                  expected.size());
    for (size_t i = 0; i < actual.size(); ++i)
      HOLOGRAM_CHECK(in_context(compare(actual[i], expected[i], tolerance),
                                [&] { return "output " + std::to_string(i); }));
    if (counts) HOLOGRAM_CHECK(check_allocations(session, inputs, actual));
  }
  if (sets == 0) return fail(ErrorCode::not_found, "no test data");
  return {};
}

// Errors without the path of the model, so that equal ones can be grouped.
std::string without_path(const Error& error, const fs::path& folder) {
  std::string text = error.to_string();
  const std::string path = (folder / "model.onnx").string() + ": ";
  if (auto at = text.find(path); at != text.npos) text.erase(at, path.size());
  return text;
}

}  // namespace

std::vector<fs::path> find_cases(const fs::path& suite) {
  if (fs::exists(suite / "model.onnx")) return {suite};
  std::vector<fs::path> cases;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(suite, error))
    if (fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
  std::ranges::sort(cases);
  return cases;
}

CaseResult run_case(const fs::path& folder) {
  CaseResult result{folder.filename().string(), Outcome::refused, ""};
  static const archive::KeyPair kKey = *archive::KeyPair::generate();
  compiler::CompileOptions options;
  if (native_code) options.key = kKey;
  auto bytes = compiler::compile_onnx(folder / "model.onnx", options);
  if (!bytes) {
    result.reason = without_path(bytes.error(), folder);
    if (bytes.error().code() == ErrorCode::internal) result.outcome = Outcome::failed;
    return result;
  }
  result.outcome = Outcome::failed;
  auto run = [&]() -> Status {
    HOLOGRAM_TRY(AlignedBytes aligned, AlignedBytes::allocate(bytes->size()));
    std::memcpy(aligned.data(), bytes->data(), bytes->size());
    auto owner = std::make_shared<AlignedBytes>(std::move(aligned));
    auto trusted = std::make_shared<archive::TrustedKeys>(std::vector{kKey.public_key()});
    HOLOGRAM_TRY(archive::Archive archive,
                 archive::Archive::open(owner->bytes(), owner, {.trusted = std::move(trusted)}));
    HOLOGRAM_TRY(const Session session, Session::open(std::move(archive)));
    return run_sets(folder, session);
  };
  if (auto status = run(); !status)
    result.reason = without_path(status.error(), folder);
  else
    result.outcome = Outcome::passed;
  return result;
}

std::vector<std::string> operators_of(const fs::path& folder) {
  std::set<std::string> names;
  try {
    auto map = FileMap::open(folder / "model.onnx");
    if (!map) return {};
    const auto proto =
        onnx::read_model_proto({reinterpret_cast<const char*>(map->bytes().data()), map->size()});
    for (const auto& node : proto.graph.nodes) names.insert(std::string(node.op));
  } catch (...) {
  }
  return {names.begin(), names.end()};
}

}  // namespace hologram::conformance
