// bundle_kernels: writes the bundle of precompiled kernels that the runtime carries.
//
//   bundle_kernels OUTPUT
//
// Built with the compiler, every program gets native code for each x86-64 level; without it the
// bundle holds the ISA alone and the runtime interprets.
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/bundle/kernel_bundle.h"
#include "runtime/programs/elementwise.h"
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
    auto compiled = codegen::compile(program, codegen::Target(level));
    if (!compiled && compiled.error().code() == ErrorCode::unsupported) {
      std::fprintf(stderr, "%s\n", compiled.error().to_string().c_str());
      continue;
    }
    HOLOGRAM_TRY(isa::NativeCode code,
                 in_context(std::move(compiled), [&] { return "kernel '" + program.name + "'"; }));
    native.push_back(std::move(code));
  }
#endif
  return native;
}

Status write_bundle(const std::string& path) {
  HOLOGRAM_TRY(const std::vector<isa::Program> programs, build_op_programs());
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
  return write_file(path, writer.finish());
}

}  // namespace
}  // namespace hologram::runtime

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bundle_kernels OUTPUT\n");
    return 2;
  }
  if (const auto written = hologram::runtime::write_bundle(argv[1]); !written) {
    std::fprintf(stderr, "bundle_kernels: %s\n", written.error().to_string().c_str());
    return 1;
  }
  return 0;
}
