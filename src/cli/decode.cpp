// `hologram decode`: a HoloTensor file back into safetensors, whole or to a quality.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/quality_target.h"
#include "holotensor/htns.h"
#include "holotensor/model/model_codec.h"
#include "holotensor/safetensors.h"
#include "support/file.h"

namespace hologram::cli {
namespace {

using namespace holotensor;

struct DecodeArguments {
  std::string input, output, quality, type;
  size_t fragments = 0;
  std::vector<std::string> rules, tensors;
};

Result<QualityTarget> target_of(const QualityWish& wish) {
  if (wish.target) return *wish.target;
  return fail(ErrorCode::invalid_argument,
              "bits are chosen when encoding; decode to 30dB, nmse=1e-3 or exact, or --fragments");
}

Result<DecodeModelOptions> options_of(const DecodeArguments& arguments) {
  DecodeModelOptions options{.tensors = arguments.tensors};
  if (arguments.fragments > 0) options.fragments = arguments.fragments;
  if (!arguments.quality.empty()) {
    HOLOGRAM_TRY(const auto wish, parse_quality(arguments.quality));
    HOLOGRAM_TRY(options.target, target_of(wish));
  }
  for (const std::string& text : arguments.rules) {
    HOLOGRAM_TRY(const auto rule, parse_quality_rule(text));
    HOLOGRAM_TRY(const auto target, target_of(rule.wish));
    options.rules.push_back({rule.pattern, target});
  }
  if (!arguments.type.empty()) options.type = dtype_from_name(arguments.type);
  return options;
}

// A file of the older format: one tensor without a name, always as f32.
Status decode_older(std::span<const std::byte> bytes, const std::filesystem::path& output) {
  HOLOGRAM_TRY(const HtnsTensor tensor, decode_htns(bytes));
  HOLOGRAM_TRY(auto writer,
               SafetensorsWriter::create(output, {{"tensor", DType::f32, tensor.shape}}));
  HOLOGRAM_CHECK(writer.write(std::as_bytes(std::span(tensor.values))));
  HOLOGRAM_CHECK(writer.finish());
  fmt::print("{}: an HTNS v1 tensor of {} values from {} fragments ({} damaged)\n", output.string(),
             tensor.values.size(), tensor.fragments_used, tensor.fragments_damaged);
  return {};
}

Status decode(const DecodeArguments& arguments) {
  const std::filesystem::path input = arguments.input;
  std::filesystem::path output = arguments.output;
  if (output.empty()) output = std::filesystem::path(input).replace_extension(".safetensors");
  if (output == input) {
    return fail(ErrorCode::invalid_argument, "{} would be overwritten; give -o", input.string());
  }
  HOLOGRAM_TRY(const auto options, options_of(arguments));
  HOLOGRAM_TRY(const FileMap map, FileMap::open(input));
  if (is_htns(map.bytes())) {
    return in_context(decode_older(map.bytes(), output), [&] { return input.string(); });
  }
  Progress progress("decoding", 0);
  HOLOGRAM_TRY(const auto result,
               decode_model(input, output, options, [&](const ModelProgress& state) -> Status {
                 progress.set(state.bytes_done, state.bytes_total, state.tensor);
                 return {};
               }));
  const std::string worst =
      result.worst.exact
          ? "every bit exact"
          : fmt::format("{:.1f} dB at worst ('{}')", result.worst.snr_db(), result.worst_tensor);
  fmt::print("{}: {} tensors, {}; {} of {} bytes read ({:.1f}%)\n", output.string(), result.tensors,
             worst, result.bytes_read, result.file_bytes,
             100.0 * static_cast<double>(result.bytes_read) /
                 static_cast<double>(std::max<uint64_t>(1, result.file_bytes)));
  return {};
}

}  // namespace

void add_decode(Commands& commands) {
  auto arguments = std::make_shared<DecodeArguments>();
  CLI::App* command =
      commands.add("decode", "Turn a .ht file back into safetensors, whole or to a quality",
                   "  hologram decode model.ht -o model.safetensors\n"
                   "  hologram decode model.ht -o small.safetensors --quality 20dB --type f16\n"
                   "  hologram decode model.ht -o part.safetensors --fragments 3 --tensor '*mlp*'",
                   [arguments] { return decode(*arguments); });
  command->add_option("file", arguments->input, "A .ht file, or one of the older HTNS format")
      ->required();
  command->add_option("-o,--output", arguments->output,
                      "The .safetensors file (default: the file's name with .safetensors)");
  auto* quality = command->add_option("-q,--quality", arguments->quality,
                                      "30dB, nmse=1e-3 or exact (default: all that is there)");
  command->add_option("--rule", arguments->rules,
                      "PATTERN=QUALITY for tensors by name; the first that matches holds");
  command
      ->add_option("--fragments", arguments->fragments, "The first so many of every tensor instead")
      ->check(CLI::Range(1, static_cast<int>(kMaxFragments)))
      ->excludes(quality);
  command->add_option("--type", arguments->type, "f32, f16 or bf16 (default: each tensor's own)")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  command->add_option("--tensor", arguments->tensors, "Only tensors whose names match a pattern");
}

}  // namespace hologram::cli
