// Seeds for onnx_fuzz and archive_fuzz: small models of the distribution's suite, and the archives
// they compile to.
//
//   fuzz_seeds SUITE CORPUS    writes CORPUS/onnx_fuzz/NAME.onnx and CORPUS/archive_fuzz/NAME.holo
#include <algorithm>
#include <cstdio>

#include "compiler/compile.h"
#include "support/file.h"

int main(int argc, char** argv) {
  using namespace hologram;
  namespace fs = std::filesystem;
  constexpr size_t kEvery = 6, kMostBytes = 4096;
  if (argc != 3 || !fs::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: %s SUITE CORPUS\n", argv[0]);
    return 2;
  }
  std::vector<fs::path> models;
  for (const auto& entry : fs::directory_iterator(argv[1]))
    if (const fs::path model = entry.path() / "model.onnx";
        fs::exists(model) && fs::file_size(model) <= kMostBytes)
      models.push_back(model);
  std::sort(models.begin(), models.end());
  const fs::path corpus(argv[2]);
  fs::create_directories(corpus / "onnx_fuzz");
  fs::create_directories(corpus / "archive_fuzz");
  size_t written = 0;
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string name = models[i].parent_path().filename().string();
    // Of the few with plans inside plans, all.
    bool has_body = false;
    for (const char* part : {"_if", "loop", "scan", "sequence_map"})
      has_body = has_body || name.find(part) != std::string::npos;
    if (i % kEvery != 0 && !has_body) continue;
    const auto bytes = read_file(models[i]);
    if (!bytes || !write_file(corpus / "onnx_fuzz" / (name + ".onnx"), *bytes)) continue;
    const auto archive = compiler::compile_onnx(models[i]);
    if (archive && write_file(corpus / "archive_fuzz" / (name + ".holo"), *archive)) ++written;
  }
  std::printf("%zu models as seeds\n", written);
  return written > 0 ? 0 : 1;
}
