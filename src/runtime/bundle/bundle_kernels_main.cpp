// bundle_kernels: writes the bundle of precompiled kernels that the runtime carries.
//
//   bundle_kernels OUTPUT KERNELS
//
// KERNELS is the folder of the standard library: every kernel of its Python files goes in, with the
// forms of some that the ops use (runtime/programs). A kernel NAME with launch sizes of its own
// brings NAME_launch, too.
//
// Built with the compiler, every program gets native code for each x86-64 level; without it the
// bundle holds the ISA alone and the runtime interprets.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "lang/compile.h"
#include "runtime/bundle/kernel_bundle.h"
#include "runtime/programs/op_programs.h"
#include "support/file.h"
#include "support/thread_pool.h"
#ifdef HOLOGRAM_WITH_CODEGEN
#include "codegen/compile.h"
#endif

namespace hologram::runtime {
namespace {

Result<std::vector<isa::NativeCode>> compile([[maybe_unused]] const isa::Program& program) {
  std::vector<isa::NativeCode> native;
#ifdef HOLOGRAM_WITH_CODEGEN
  for (const codegen::Level level : codegen::kLevels) {
    HOLOGRAM_TRY(isa::NativeCode code, in_context(codegen::compile(program, codegen::Target(level)),
                                                  [&] { return "kernel '" + program.name + "'"; }));
    native.push_back(std::move(code));
  }
#endif
  return native;
}

struct Library {
  std::vector<lang::ir::Kernel> sources;
  std::vector<isa::Program> kernels;
  std::vector<isa::Program> launches;  // one thread computes a few numbers: never native
};

Result<Library> read_library(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".py") files.push_back(entry.path());
  std::ranges::sort(files);
  Library library;
  for (const std::filesystem::path& file : files) {
    HOLOGRAM_TRY(const std::string source, read_text_file(file));
    HOLOGRAM_TRY(auto kernels, lang::compile_source(source, file.string()));
    for (lang::CompiledKernel& kernel : kernels) {
      library.sources.push_back(std::move(kernel.ir));
      library.kernels.push_back(std::move(kernel.program));
      if (kernel.launch) library.launches.push_back(*std::move(kernel.launch));
    }
  }
  return library;
}

Status write_bundle(const std::string& path, const std::string& folder) {
  HOLOGRAM_TRY(Library library, read_library(folder));
  HOLOGRAM_TRY(std::vector<isa::Program> programs, build_op_programs(library.sources));
  std::ranges::move(library.kernels, std::back_inserter(programs));
  std::vector<Result<std::vector<isa::NativeCode>>> compiled(programs.size());
  ThreadPool::shared().parallel_for(
      programs.size(), 1,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) compiled[i] = compile(programs[i]);
      },
      Schedule::dynamic);
  KernelBundleWriter writer;
  for (size_t i = 0; i < programs.size(); ++i) {
    HOLOGRAM_TRY(std::vector<isa::NativeCode> native, std::move(compiled[i]));
    HOLOGRAM_CHECK(writer.add(programs[i], std::move(native)));
  }
  for (const isa::Program& launch : library.launches) HOLOGRAM_CHECK(writer.add(launch, {}));
  return write_file(path, writer.finish());
}

}  // namespace
}  // namespace hologram::runtime

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bundle_kernels OUTPUT KERNELS\n");
    return 2;
  }
  if (const auto written = hologram::runtime::write_bundle(argv[1], argv[2]); !written) {
    std::fprintf(stderr, "bundle_kernels: %s\n", written.error().to_string().c_str());
    return 1;
  }
  return 0;
}
