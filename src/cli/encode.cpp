// `hologram encode`: a model's weights into a HoloTensor file.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/model_weights.h"
#include "cli/progress.h"
#include "cli/quality_target.h"
#include "holotensor/model/model_codec.h"

namespace hologram::cli {
namespace {

using namespace holotensor;

struct EncodeArguments {
  std::string input, output, scheme = "refine", quality;
  uint16_t fragments = 8;
  std::optional<uint16_t> min_fragments;
  uint64_t seed = 0;
  bool any = false;
  std::vector<std::string> rules;
};

Result<EncodeModelOptions> options_of(const EncodeArguments& arguments) {
  EncodeModelOptions options;
  options.automatic = arguments.scheme == "auto";
  if (!options.automatic) {
    HOLOGRAM_TRY(options.encoder.scheme, scheme_from_name(arguments.scheme));
  }
  options.encoder.fragments = arguments.fragments;
  options.encoder.seed = arguments.seed;
  options.encoder.min_fragments =
      arguments.min_fragments.value_or(std::min<uint16_t>(3, arguments.fragments));
  if (arguments.any) {
    options.encoder.distribution = Distribution::any;
    if (options.encoder.min_fragments > arguments.fragments) {
      return fail(ErrorCode::invalid_argument,
                  "--min-fragments {} is more than the {} of --fragments; give at most as many",
                  options.encoder.min_fragments, arguments.fragments);
    }
  }
  if (!arguments.quality.empty()) {
    HOLOGRAM_TRY(const auto wish, parse_quality(arguments.quality));
    options.encoder.target_bits = wish.bits;
    options.encoder.target = wish.target;
  }
  for (const std::string& text : arguments.rules) {
    HOLOGRAM_TRY(const auto rule, parse_quality_rule(text));
    options.rules.push_back({rule.pattern, rule.wish.bits, rule.wish.target});
  }
  return options;
}

Status encode(const EncodeArguments& arguments) {
  const std::filesystem::path input = arguments.input;
  std::filesystem::path output = arguments.output;
  if (output.empty()) output = std::filesystem::path(input).replace_extension(".ht");
  if (output == input) {
    return fail(ErrorCode::invalid_argument, "{} would be overwritten; give -o", input.string());
  }
  HOLOGRAM_TRY(const auto options, options_of(arguments));
  HOLOGRAM_TRY(const auto model, open_model_weights(input));
  Progress progress("encoding", 0);
  HOLOGRAM_TRY(const auto result,
               in_context(encode_model(*model, output, options,
                                       [&](const ModelProgress& state) -> Status {
                                         progress.set(state.bytes_done, state.bytes_total,
                                                      state.tensor);
                                         return {};
                                       }),
                          [&] { return input.string(); }));
  size_t exact = 0;
  for (const EncodedReport& tensor : result.tensors) exact += tensor.quality.exact ? 1 : 0;
  fmt::print("{}: {} tensors ({} exact), {} bytes, {:.1f}% of the weights' {}\n", output.string(),
             result.tensors.size(), exact, result.file_bytes,
             100.0 * static_cast<double>(result.file_bytes) /
                 static_cast<double>(std::max<uint64_t>(1, result.source_bytes)),
             result.source_bytes);
  return {};
}

}  // namespace

void add_encode(Commands& commands) {
  auto arguments = std::make_shared<EncodeArguments>();
  CLI::App* command = commands.add(
      "encode", "Store a model's weights so that any fraction of the bytes works",
      "  hologram encode model.safetensors -o model.ht\n"
      "  hologram encode model.onnx -o model.ht --quality 4bits --rule 'attention.*=exact'\n"
      "  hologram encode model.safetensors -o model.ht --any --fragments 8 --min-fragments 3\n"
      "  hologram encode model.safetensors -o model.ht --scheme auto --quality 30dB",
      [arguments] { return encode(*arguments); });
  command->add_option("model", arguments->input, "A .safetensors or .onnx file")->required();
  command->add_option("-o,--output", arguments->output,
                      "The .ht file (default: the model's name with .ht)");
  command
      ->add_option("--scheme", arguments->scheme,
                   "refine, spectral, projection, lowrank, packed; auto tries all on every tensor")
      ->capture_default_str();
  command->add_option("-q,--quality", arguments->quality,
                      "4bits (a weight), 30dB, nmse=1e-3 or exact (the default)");
  command->add_option("--rule", arguments->rules,
                      "PATTERN=QUALITY for tensors by name; the first that matches holds");
  command->add_option("--fragments", arguments->fragments, "Fragments a tensor")
      ->capture_default_str()
      ->check(CLI::Range(1, static_cast<int>(kMaxFragments)));
  command->add_flag("--any", arguments->any,
                    "Any fragments decode, not only the first ones (costs redundancy)");
  command
      ->add_option("--min-fragments", arguments->min_fragments,
                   "With --any: how many give a first approximation (default: 3)")
      ->check(CLI::Range(1, static_cast<int>(kMaxFragments)));
  command->add_option("--seed", arguments->seed, "Of the random schemes")->capture_default_str();
}

}  // namespace hologram::cli
