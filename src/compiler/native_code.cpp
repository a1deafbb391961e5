#include "compiler/native_code.h"

#include "archive/code_section.h"
#include "codegen/compile.h"
#include "graph/pointwise.h"
#include "isa/binary.h"
#include "support/log.h"
#include "support/thread_pool.h"

namespace hologram::compiler {
namespace {

// 2 for x86-64-v2, as the section has it.
uint32_t number_of(codegen::Level level) { return 2 + static_cast<uint32_t>(level); }

struct Job {
  archive::CompiledProgram result;
  isa::Program program;  // as it is compiled: with its uniform inputs
  Status status;
};

Result<std::vector<Job>> jobs_of(const Lowered& lowered) {
  std::vector<Job> jobs;
  for (uint32_t i = 0; i < lowered.model.programs.size(); ++i) {
    const auto isa = std::as_bytes(std::span(lowered.model.programs[i]->code));
    HOLOGRAM_TRY(const isa::Program program, isa::decode(isa));
    for (uint32_t uniform : lowered.variants[i])
      jobs.push_back({{i, uniform, {isa.begin(), isa.end()}, {}},
                      graph::with_uniform_inputs(program, uniform),
                      {}});
  }
  return jobs;
}

}  // namespace

Result<std::vector<std::vector<std::byte>>> compile_native_code(
    const Lowered& lowered, const std::vector<std::string>& targets, const archive::KeyPair& key) {
  std::vector<std::vector<std::byte>> sections;
  std::vector<codegen::Level> done;
  for (const std::string& name : targets) {
    HOLOGRAM_TRY(const codegen::Target target, codegen::Target::named(name));
    if (std::ranges::find(done, target.level()) != done.end()) continue;
    done.push_back(target.level());
    HOLOGRAM_TRY(std::vector<Job> jobs, jobs_of(lowered));
    ThreadPool::shared().parallel_for(
        jobs.size(), 1,
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) {
            auto code = codegen::compile(jobs[i].program, target);
            if (code)
              jobs[i].result.code = *std::move(code);
            else
              jobs[i].status = std::unexpected(code.error());
          }
        },
        Schedule::dynamic);
    std::vector<archive::CompiledProgram> programs;
    for (Job& job : jobs) {
      // Pointwise programs keep nothing between threads; code that wants scratch is not for them.
      if (job.status && job.result.code.scratch_bytes(1, 0) <= 64)
        programs.push_back(std::move(job.result));
      else if (!job.status)
        log::warn("no native code for program {}: {}", job.result.program,
                  job.status.error().to_string());
    }
    sections.push_back(archive::write_code_section(number_of(target.level()), programs, key));
  }
  return sections;
}

}  // namespace hologram::compiler
