// `hologram quantize`: an ONNX model in f32 -> one in 8-bit integers, by ranges measured on inputs.
#include <memory>

#include "cli/calibration.h"
#include "cli/command.h"
#include "compiler/compile.h"
#include "onnx/model.h"
#include "support/aligned.h"
#include "support/file.h"

namespace hologram::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  fs::path model, folder, output;
  std::string method = "mse";
  std::vector<std::string> skip;
};

double megabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

// The model as it will run, compiled from the bytes that are written.
struct Quantised {
  std::vector<std::byte> archive;
  compiler::CompileReport report;

  size_t steps(std::string_view kernel) const {
    for (const auto& k : report.kernels)
      if (k.name == kernel) return k.steps;
    return 0;
  }
};

Result<Quantised> compile_bytes(const std::string& bytes) {
  HOLOGRAM_TRY(AlignedBytes memory, AlignedBytes::allocate(bytes.size()));
  std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), memory.data());
  auto owner = std::make_shared<AlignedBytes>(std::move(memory));
  HOLOGRAM_TRY(graph::Graph graph, onnx::read_model(owner->bytes(), owner));
  Quantised result;
  HOLOGRAM_TRY(result.archive, compiler::compile(std::move(graph), {.report = &result.report}));
  return result;
}

Result<std::vector<std::vector<kernels::Value>>> run_all(const std::vector<std::byte>& bytes,
                                                         const std::vector<Sample>& samples) {
  HOLOGRAM_TRY(AlignedBytes memory, AlignedBytes::allocate(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), memory.data());
  auto owner = std::make_shared<AlignedBytes>(std::move(memory));
  HOLOGRAM_TRY(archive::Archive archive, archive::Archive::open(owner->bytes(), owner));
  HOLOGRAM_TRY(const runtime::Session session, runtime::Session::open(std::move(archive)));
  std::vector<std::vector<kernels::Value>> results;
  for (const Sample& sample : samples) {
    HOLOGRAM_TRY(auto outputs, session.run(sample));
    results.push_back(std::move(outputs));
  }
  return results;
}

void print_accuracy(const Measured& measured,
                    const std::vector<std::vector<kernels::Value>>& given) {
  fmt::print("\n{:<32} {:>12} {:>12} {:>12} {:>9}\n", "output", "max error", "rms error", "range",
             "SNR dB");
  for (size_t i = 0; i < measured.output_names.size(); ++i) {
    const Accuracy a = accuracy_of(measured.outputs, given, i);
    fmt::print("{:<32} {:>12.4g} {:>12.4g} {:>12.4g} {:>9.1f}\n", measured.output_names[i],
               a.largest, a.rms, a.range, a.decibels);
  }
}

Status quantize(const Arguments& arguments) {
  if (arguments.model.extension() != ".onnx")
    return fail(ErrorCode::invalid_argument,
                "{}: only an .onnx model can be quantised; an archive has taken all decisions",
                arguments.model.string());
  HOLOGRAM_TRY(const RangeMethod method, parse_range_method(arguments.method));
  const std::set<std::string> skip(arguments.skip.begin(), arguments.skip.end());
  HOLOGRAM_TRY(const auto plan, onnx::plan_quantisation(arguments.model, skip));
  std::vector<Sample> samples;
  HOLOGRAM_TRY(const Measured measured, measure_ranges(arguments.model, plan.activations,
                                                       arguments.folder, method, samples));
  HOLOGRAM_TRY(const std::string bytes,
               onnx::quantise_model(arguments.model, skip, measured.ranges));
  HOLOGRAM_TRY(const Quantised quantised, compile_bytes(bytes));
  HOLOGRAM_TRY(const auto given, run_all(quantised.archive, samples));

  fs::path output = arguments.output;
  if (output.empty()) output = fs::path(arguments.model).replace_extension(".int8.onnx");
  const bool archive = output.extension() == ".holo";
  HOLOGRAM_CHECK(archive ? write_file(output, quantised.archive)
                         : write_file(output, std::string_view(bytes)));

  fmt::print("{} samples, ranges by {}\n", samples.size(),
             method == RangeMethod::extremes ? "the smallest and largest value"
                                             : "the least squared error");
  fmt::print("{} nodes by 8-bit weights, {}; {} convolutions and {} products run in integers\n",
             plan.nodes,
             plan.opset < 13 ? "one scale a tensor (a scale a channel needs opset 13)"
                             : "a scale a channel",
             quantised.steps("hologram.ConvInteger"), quantised.steps("hologram.MatMulInteger"));
  for (const auto& kept : plan.kept)
    fmt::print("  in f32: {} '{}': {}\n", kept.op, kept.node, kept.reason);
  print_accuracy(measured, given);
  uint64_t before = 0;
  HOLOGRAM_TRY(const auto plain, compiler::compile_onnx(arguments.model));
  before = plain.size();
  fmt::print("\n{}: {:.2f} MB; compiled {:.2f} MB where f32 has {:.2f} MB\n", output.string(),
             megabytes(archive ? quantised.archive.size() : bytes.size()),
             megabytes(quantised.archive.size()), megabytes(before));
  return {};
}

}  // namespace

void add_quantize(Commands& commands) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = commands.add(
      "quantize", "Make an 8-bit model of an ONNX model, by ranges measured on inputs",
      "  hologram quantize model.onnx --calibrate inputs -o model.int8.onnx\n"
      "  hologram quantize model.onnx --calibrate inputs --skip /head/MatMul -o model.holo",
      [arguments] { return quantize(*arguments); });
  command->add_option("model", arguments->model, "The .onnx file, in f32")->required();
  command
      ->add_option("--calibrate", arguments->folder,
                   "A folder of inputs: one .npz a sample, or folders of .npy or .pb files")
      ->required();
  command->add_option("-o,--output", arguments->output,
                      "An .onnx model or a .holo archive; MODEL.int8.onnx where not given");
  command->add_option(
      "--method", arguments->method,
      "How ranges follow from values: mse (default; least squared error) or minmax");
  command->add_option("--skip", arguments->skip, "A node that stays in f32; may be repeated");
}

}  // namespace hologram::cli
