// `hologram compile`, `run` and `bench`: the main job of the product.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "cli/checked_compile.h"
#include "cli/command.h"
#include "cli/inspect/text.h"
#include "cli/model_file.h"
#include "cli/progress.h"
#include "cli/tensor_input.h"
#include "cli/tensor_output.h"
#include "support/file.h"

namespace hologram::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct CompileArguments {
  fs::path model, output;
  std::vector<std::string> shapes;
  std::string precision = "f32", weights;
  fs::path check;
  std::vector<std::string> targets = {"host"};
  int explain = 0;
};

// The user's key, made where there is none.
Result<archive::KeyPair> signing_key() {
  const archive::KeyStore store;
  auto key = store.key();
  if (key || key.error().code() != ErrorCode::not_found) return key;
  HOLOGRAM_TRY(archive::KeyPair made, store.create_key());
  fmt::print(stderr, "made a key to sign native code with: {} (in {})\n",
             made.public_key().to_text(), store.key_file().string());
  return made;
}

Status compile(const CompileArguments& arguments) {
  HOLOGRAM_TRY(auto options, compile_options(arguments.shapes));
  compiler::CompileReport report;
  options.report = &report;
  options.debug = std::max(options.debug, arguments.explain > 1 ? arguments.explain : 0);
  HOLOGRAM_TRY(options.precision, compiler::parse_precision(arguments.precision));
  if (!arguments.weights.empty()) {
    HOLOGRAM_TRY(options.weights, compiler::parse_weight_encoding(arguments.weights));
  }
  options.targets = arguments.targets;
  std::erase(options.targets, "none");
  if (!options.targets.empty()) {
    HOLOGRAM_TRY(options.key, signing_key());
  }
  const fs::path output = arguments.output.empty()
                              ? fs::path(arguments.model).replace_extension(".holo")
                              : arguments.output;
  if (arguments.model.extension() == ".holo")
    return fail(ErrorCode::invalid_argument, "'{}' is an archive: it is compiled already",
                arguments.model.string());
  std::error_code different;
  if (fs::equivalent(arguments.model, output, different))
    return fail(ErrorCode::invalid_argument, "the archive would replace the model '{}'",
                arguments.model.string());
  const auto start = Clock::now();
  std::vector<std::byte> bytes;
  {
    Progress progress("compiling", compiler::kUsualSteps);
    options.on_step = [&progress](std::string_view step, size_t done) {
      progress.set(done, std::max(compiler::kUsualSteps, done + 1), step);
    };
    HOLOGRAM_TRY(bytes, arguments.check.empty()
                            ? compiler::compile_onnx(arguments.model, options)
                            : compile_checked(arguments.model, options, arguments.check));
    progress.set(compiler::kUsualSteps, compiler::kUsualSteps, "writing");
    HOLOGRAM_CHECK(write_file(output, bytes));
  }
  if (arguments.explain > 0) fmt::print("{}\n", report.to_text());
  fmt::print("{}: {} in {:.0f} ms\n", output.string(), readable_size(bytes.size()),
             milliseconds_since(start));
  return {};
}

struct RunArguments {
  fs::path model;
  InputOptions inputs;
  std::vector<std::string> outputs;
  int top = 0, runs = 20;
  std::string quality;
  bool profile = false;
  archive::OpenOptions open;
};

Result<runtime::Session> open_session(const RunArguments& arguments) {
  runtime::WeightOptions weights;
  if (!arguments.quality.empty()) {
    HOLOGRAM_TRY(weights.quality, runtime::WeightQuality::parse(arguments.quality));
    weights.improve = false;  // what was asked for, and the same at every run
  }
  HOLOGRAM_TRY(auto session,
               open_model(arguments.model, arguments.inputs.shapes, arguments.open, weights));
  if (arguments.quality.empty()) return session;
  if (session.weights().version == 0)
    return fail(ErrorCode::invalid_argument,
                "{}: its constants are plain and have one quality; compile it with --weights",
                arguments.model.string());
  fmt::print(stderr, "{}\n", describe(session.weights()));
  return session;
}

Status run(const RunArguments& arguments) {
  HOLOGRAM_TRY(const runtime::Session session, open_session(arguments));
  HOLOGRAM_TRY(const auto inputs, read_inputs(session.inputs(), arguments.inputs));
  HOLOGRAM_TRY(const auto outputs, session.run(inputs));
  for (const std::string& text : arguments.outputs) {
    const auto [given, path] = split_assignment(text);
    const std::string name =
        given.empty() && outputs.size() == 1 ? session.outputs()[0].name : given;
    const auto port = std::find_if(session.outputs().begin(), session.outputs().end(),
                                   [&](const auto& p) { return p.name == name; });
    if (port == session.outputs().end())
      return fail(ErrorCode::not_found, "{}; write --output NAME=FILE with one of\n{}",
                  name.empty() ? fmt::format("which output goes to '{}'", path)
                               : fmt::format("the model has no output '{}'", name),
                  describe(session.outputs()));
    HOLOGRAM_CHECK(
        write_output(path, outputs[static_cast<size_t>(port - session.outputs().begin())]));
    fmt::print("{} written to {}\n", name, path);
  }
  if (arguments.top > 0) {
    HOLOGRAM_TRY(const std::string text, top(outputs[0], arguments.top));
    fmt::print("{}", text);
  } else if (arguments.outputs.empty()) {
    for (size_t i = 0; i < outputs.size(); ++i)
      fmt::print("{}: {}\n", session.outputs()[i].name, summarise(outputs[i]));
  }
  return {};
}

void print_profile(std::vector<runtime::StepTime> times) {
  double total = 0;
  for (const auto& step : times) total += step.milliseconds;
  std::stable_sort(times.begin(), times.end(),
                   [](const auto& a, const auto& b) { return a.milliseconds > b.milliseconds; });
  fmt::print("\n{:>9}  {:>6}  {:<24} {}\n", "ms", "share", "kernel", "step");
  for (size_t i = 0; i < std::min<size_t>(times.size(), 20); ++i)
    fmt::print("{:9.3f}  {:5.1f}%  {:<24} {}\n", times[i].milliseconds,
               100 * times[i].milliseconds / total, times[i].kernel, times[i].name);
  if (times.size() > 20) fmt::print("... and {} more steps\n", times.size() - 20);
  std::map<std::string, std::pair<double, int>> kernels;
  for (const auto& step : times) {
    auto& [milliseconds, count] = kernels[step.kernel];
    milliseconds += step.milliseconds;
    ++count;
  }
  std::vector<std::pair<std::string, std::pair<double, int>>> sums(kernels.begin(), kernels.end());
  std::stable_sort(sums.begin(), sums.end(),
                   [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  fmt::print("\n{:>9}  {:>6}  {:<24} {}\n", "ms", "share", "kernel", "steps");
  for (const auto& [kernel, sum] : sums)
    fmt::print("{:9.3f}  {:5.1f}%  {:<24} {}\n", sum.first, 100 * sum.first / total, kernel,
               sum.second);
}

Status bench(const RunArguments& arguments) {
  auto start = Clock::now();
  HOLOGRAM_TRY(const runtime::Session session, open_session(arguments));
  const double open_ms = milliseconds_since(start);
  HOLOGRAM_TRY(const auto inputs, read_inputs(session.inputs(), arguments.inputs));
  start = Clock::now();
  HOLOGRAM_CHECK(session.run(inputs));
  const double first_ms = milliseconds_since(start);
  std::vector<double> times;
  for (int i = 0; i < arguments.runs; ++i) {
    start = Clock::now();
    HOLOGRAM_CHECK(session.run(inputs));
    times.push_back(milliseconds_since(start));
  }
  std::sort(times.begin(), times.end());
  fmt::print(
      "open    {:9.3f} ms{}\nfirst   {:9.3f} ms\nmedian  {:9.3f} ms   of {} runs\nbest    {:9.3f} "
      "ms\nworst   {:9.3f} ms\n",
      open_ms, arguments.model.extension() == ".onnx" ? "   (with compilation)" : "", first_ms,
      times[times.size() / 2], times.size(), times.front(), times.back());
  if (arguments.profile) {
    std::vector<runtime::StepTime> steps;
    HOLOGRAM_CHECK(session.profile(inputs, steps));
    print_profile(std::move(steps));
  }
  return {};
}

void add_input_options(CLI::App* command, RunArguments& arguments) {
  command
      ->add_option("model", arguments.model, "A .holo archive, or an .onnx model to compile first")
      ->required();
  command->add_option("-i,--input", arguments.inputs.files,
                      "NAME=FILE: .npy, .npz, .pb, .png, .jpg, or raw bytes");
  command->add_option("--shape", arguments.inputs.shapes,
                      "NAME=1,3,224,224, for inputs whose shape is open");
  command->add_option("--image", arguments.inputs.image,
                      "How pictures become tensors: imagenet, unit, signed, raw, or "
                      "'mean=r,g,b;std=r,g,b;layout=nchw'");
  command->add_flag("--random", arguments.inputs.random, "Draw the inputs that are not given");
  command->add_option("--seed", arguments.inputs.seed, "For --random");
  command->add_flag("--preload", arguments.open.preload, "Read the archive instead of mapping it");
  command->add_flag("--keep-pages", arguments.open.keep_pages,
                    "Keep large weights in memory between runs: some percent faster");
  command->add_option("--quality", arguments.quality,
                      "Of an archive compiled with --weights: 0.5 or 50% of the weights' bytes, "
                      "4fragments, 20dB or exact (the default)");
}

}  // namespace

void add_model_commands(Commands& commands) {
  auto compiling = std::make_shared<CompileArguments>();
  CLI::App* command =
      commands.add("compile", "Compile an ONNX model into a .holo archive",
                   "  hologram compile resnet50.onnx -o resnet50.holo\n"
                   "  hologram compile bert.onnx --shape input_ids=1,128 --explain\n"
                   "  hologram compile bert.onnx --weights refine:8",
                   [compiling] { return compile(*compiling); });
  command->add_option("model", compiling->model, "The .onnx file")->required();
  command->add_option("-o,--output", compiling->output,
                      "The archive; beside the model where not given");
  command->add_option("--shape", compiling->shapes,
                      "NAME=1,3,224,224: fixes the shape of an input");
  command->add_option(
      "--precision", compiling->precision,
      "f32 (default), fast (f32 in two bf16 parts where the CPU has matrix tiles), bf16, f16 "
      "(weights stored as f16, arithmetic in f32), int8 (products in 8-bit integers) or int4 "
      "(weights of products in 4 bits)");
  command->add_option("--check", compiling->check,
                      "A folder of inputs as quantize takes them: of fast and bf16, each product "
                      "takes the fastest form while errors stay within 1e-4 and 2e-2; of f32, "
                      "convolutions sum in f64 where it is off by more than 1e-5 from f64");
  command->add_option("--weights", compiling->weights,
                      "SCHEME:FRAGMENTS[,any], such as refine:8: store the weights so that any "
                      "fraction of their bytes works (run --quality)");
  command->add_flag(
      "--explain", compiling->explain,
      "Show steps, fused groups, memory and kernels; thrice: the graph after each step");

  auto running = std::make_shared<RunArguments>();
  command =
      commands.add("run", "Run a model on inputs from files",
                   "  hologram run resnet50.holo --input image=cat.jpg --image imagenet --top 5\n"
                   "  hologram run bert.holo --input input_ids=ids.npy --output hidden=hidden.npy",
                   [running] { return run(*running); });
  add_input_options(command, *running);
  command->add_option("-o,--output", running->outputs,
                      "NAME=FILE: .npy, .json, or raw bytes; otherwise a summary is shown");
  command->add_option("--top", running->top, "Show the N largest elements of the first output")
      ->check(CLI::Range(1, 1'000'000));

  auto measuring = std::make_shared<RunArguments>();
  measuring->inputs.random = true;
  command = commands.add(
      "bench", "Measure how long a model takes to open and to run",
      "  hologram bench resnet50.holo --runs 50\n  hologram bench model.onnx --profile",
      [measuring] { return bench(*measuring); });
  add_input_options(command, *measuring);
  command->add_option("--runs", measuring->runs, "How often")->check(CLI::Range(1, 1'000'000));
  command->add_flag("--profile", measuring->profile,
                    "Show where the time of a run goes, step by step");
}

}  // namespace hologram::cli
