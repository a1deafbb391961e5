#include "cli/kernels_compile.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "archive/kernels.h"
#include "cli/progress.h"
#include "codegen/compile.h"
#include "codegen/disassembler.h"
#include "isa/text.h"
#include "lang/json/json.h"
#include "runtime/bundle/kernel_bundle.h"
#include "support/file.h"

namespace hologram::cli {
namespace {

namespace fs = std::filesystem;

struct CompileArguments {
  std::vector<std::string> paths;
  std::string emit = "holo";
  fs::path output;
  unsigned jobs = 0;
  bool watch = false, check = false;
};

// What one source became: files to write, or kernels for the archive.
struct Compiled {
  std::vector<lang::CompiledKernel> kernels;
  std::vector<std::string> texts;  // one a kernel, for json, isa and asm
};

Result<std::string> assembly(const isa::Program& program) {
  HOLOGRAM_TRY(const codegen::Target target, codegen::Target::host());
  HOLOGRAM_TRY(const isa::NativeCode code, codegen::compile(program, target));
  HOLOGRAM_TRY(const auto instructions, codegen::disassemble(code));
  std::string text =
      fmt::format("; {} for {}, {} bytes\n", program.name, code.level, code.code.size());
  for (const codegen::MachineInstruction& i : instructions)
    text += fmt::format("{:6x}:  {}\n", i.offset, i.text);
  return text;
}

Result<Compiled> compile_one(const fs::path& file, const CompileArguments& arguments) {
  HOLOGRAM_TRY(auto kernels, compile_kernel_file(file));
  Compiled out;
  for (const lang::CompiledKernel& kernel : kernels) {
    if (arguments.check) continue;
    if (arguments.emit == "json") out.texts.push_back(lang::write_json(kernel.ir));
    if (arguments.emit == "isa") out.texts.push_back(isa::disassemble(kernel.program));
    if (arguments.emit == "asm") {
      HOLOGRAM_TRY(std::string text, assembly(kernel.program));
      out.texts.push_back(std::move(text));
    }
  }
  out.kernels = std::move(kernels);
  return out;
}

// All files, some at a time; errors are kept in the order of the files.
std::vector<Result<Compiled>> compile_all(const std::vector<fs::path>& files,
                                          const CompileArguments& arguments) {
  std::vector<Result<Compiled>> results(files.size());
  Progress progress("compiling kernels", files.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i; (i = next++) < files.size();) {
      results[i] = compile_one(files[i], arguments);
      progress.advance(1, files[i].filename().string());
    }
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t jobs = std::min<size_t>(arguments.jobs ? arguments.jobs : cores, files.size());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  return results;
}

Status write_archive(const std::vector<Result<Compiled>>& results, const fs::path& path) {
  // ISA alone: machine code in an archive needs a signature, and every machine can make its own.
  runtime::KernelBundleWriter writer;
  size_t count = 0;
  for (const Result<Compiled>& result : results)
    for (const lang::CompiledKernel& kernel : result->kernels) {
      HOLOGRAM_CHECK(in_context(writer.add(kernel.program, {}),
                                [&] { return fmt::format("kernel '{}'", kernel.ir.name); }));
      if (kernel.launch) HOLOGRAM_CHECK(writer.add(*kernel.launch, {}));
      ++count;
    }
  const std::vector<std::byte> bytes = archive::write_kernels(writer.finish());
  HOLOGRAM_CHECK(write_file(path, bytes));
  fmt::print("{}: {} kernel{}, {:.1f} kB\n", path.string(), count, count == 1 ? "" : "s",
             static_cast<double>(bytes.size()) / 1e3);
  return {};
}

Status write_texts(const std::vector<Result<Compiled>>& results,
                   const CompileArguments& arguments) {
  size_t count = 0;
  for (const Result<Compiled>& result : results) count += result->texts.size();
  if (arguments.output.empty()) {
    if (count != 1)
      return fail(ErrorCode::invalid_argument,
                  "{} kernels need a folder to be written to: -o FOLDER", count);
    for (const Result<Compiled>& result : results)
      for (const std::string& text : result->texts) fmt::print("{}", text);
    return {};
  }
  // One kernel may go to a file with its extension; anything else is a folder.
  const bool one_file = count == 1 && arguments.output.has_extension();
  std::error_code error;
  if (!one_file) fs::create_directories(arguments.output, error);
  if (error) return fail(ErrorCode::io_error, "{}: {}", arguments.output.string(), error.message());
  for (const Result<Compiled>& result : results)
    for (size_t i = 0; i < result->texts.size(); ++i) {
      const fs::path path =
          one_file ? arguments.output
                   : arguments.output / (result->kernels[i].ir.name + "." + arguments.emit);
      HOLOGRAM_CHECK(write_file(path, result->texts[i]));
    }
  fmt::print("{}: {} kernel{} as {}\n", arguments.output.string(), count, count == 1 ? "" : "s",
             arguments.emit);
  return {};
}

Status compile_once(const CompileArguments& arguments) {
  HOLOGRAM_TRY(const std::vector<fs::path> files, find_kernel_sources(arguments.paths));
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Result<Compiled>> results = compile_all(files, arguments);
  size_t rejected = 0, kernels = 0;
  for (const Result<Compiled>& result : results) {
    if (result) {
      kernels += result->kernels.size();
      continue;
    }
    ++rejected;
    fmt::print(stderr, "{}\n", result.error().message());
  }
  if (rejected > 0)
    return fail(ErrorCode::parse_error, "{} of {} files rejected; nothing was written", rejected,
                files.size());
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  if (arguments.check) {
    fmt::print("{} kernel{} in {} file{} {} right ({:.0f} ms)\n", kernels, kernels == 1 ? "" : "s",
               files.size(), files.size() == 1 ? "" : "s", kernels == 1 ? "is" : "are",
               took.count());
    return {};
  }
  if (arguments.emit != "holo") return write_texts(results, arguments);
  return write_archive(results, arguments.output.empty() ? "kernels.holo" : arguments.output);
}

// When each source last changed; sources that come and go count too.
std::map<fs::path, fs::file_time_type> times_of(const std::vector<std::string>& paths) {
  std::map<fs::path, fs::file_time_type> times;
  if (auto files = find_kernel_sources(paths))
    for (const fs::path& file : *files) {
      std::error_code gone;
      times[file] = fs::last_write_time(file, gone);
    }
  return times;
}

// Set by Ctrl-C: what is being compiled is finished and written whole.
volatile std::sig_atomic_t stop_watching = 0;

Status watch(const CompileArguments& arguments) {
  HOLOGRAM_TRY(const auto files, find_kernel_sources(arguments.paths));
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { stop_watching = 1; });
  fmt::print("watching {} file{}; stop with Ctrl-C\n", files.size(), files.size() == 1 ? "" : "s");
  std::map<fs::path, fs::file_time_type> seen;
  while (!stop_watching) {
    if (auto now = times_of(arguments.paths); now != seen) {
      for (const auto& [file, time] : now)
        if (!seen.empty() && (!seen.contains(file) || seen[file] != time))
          fmt::print("changed: {}\n", file.string());
      seen = std::move(now);
      if (const Status done = compile_once(arguments); !done)
        fmt::print(stderr, "error: {}\n", done.error().message());
      std::fflush(stdout);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  fmt::print("stopped\n");
  return {};
}

Status compile(const CompileArguments& arguments) {
  return arguments.watch ? watch(arguments) : compile_once(arguments);
}

}  // namespace

Result<std::vector<fs::path>> find_kernel_sources(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      for (const auto& entry : fs::recursive_directory_iterator(path, error))
        if (entry.path().extension() == ".py") files.push_back(entry.path());
    } else if (fs::exists(path, error)) {
      files.emplace_back(path);
    } else {
      return fail(ErrorCode::not_found, "there is no file or folder '{}'", path);
    }
  }
  if (files.empty())
    return fail(ErrorCode::invalid_argument, "there is no kernel source (.py) in {}",
                fmt::join(paths, ", "));
  std::ranges::sort(files);
  files.erase(std::ranges::unique(files).begin(), files.end());
  return files;
}

Result<std::vector<lang::CompiledKernel>> compile_kernel_file(const fs::path& file) {
  HOLOGRAM_TRY(const std::string text, read_text_file(file));
  if (file.extension() != ".json") return lang::compile_source(text, file.string());
  HOLOGRAM_TRY(lang::CompiledKernel kernel,
               in_context(lang::compile_json(text), [&] { return file.string(); }));
  std::vector<lang::CompiledKernel> one;
  one.push_back(std::move(kernel));
  return one;
}

void add_kernels_compile(Commands& commands, const std::string& name, CLI::App* parent) {
  const auto arguments = std::make_shared<CompileArguments>();
  const std::string call = parent ? "hologram kernels " + name : "hologram-compile " + name;
  CLI::App* command = commands.add(
      name, "Compile kernels written in Python",
      fmt::format("  {0} kernels/ -o kernels.holo\n  {0} --check kernels/stdlib\n"
                  "  {0} --emit asm kernels/stdlib/vector/vector_add.py",
                  call),
      [arguments] { return compile(*arguments); }, parent);
  command->add_option("paths", arguments->paths, "kernel files, or folders of them")
      ->default_str(".")
      ->type_name("DIR|FILE");
  command->add_option("--emit", arguments->emit, "what to write: json, isa, asm or holo")
      ->check(CLI::IsMember({"json", "isa", "asm", "holo"}))
      ->capture_default_str();
  command->add_option(
      "-o,--output", arguments->output,
      "a folder for json, isa and asm (one kernel: a file, or nothing to print it); "
      "a file for holo");
  command->add_option("-j,--jobs", arguments->jobs, "files compiled at a time; 0: one a core")
      ->check(CLI::Range(0, 256));
  command->add_flag("--watch", arguments->watch, "compile again whenever a file changes");
  command->add_flag("--check", arguments->check, "only say whether the kernels are right");
  command->preparse_callback([arguments](size_t) { arguments->paths = {}; });
  command->parse_complete_callback([arguments] {
    if (arguments->paths.empty()) arguments->paths = {"."};
  });
}

}  // namespace hologram::cli
