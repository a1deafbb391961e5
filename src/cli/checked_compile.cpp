#include "cli/checked_compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/calibration.h"
#include "cli/model_file.h"
#include "runtime/session/turns.h"

namespace hologram::cli {
namespace {

using Outputs = std::vector<std::vector<kernels::Value>>;  // [sample][output]

Result<Outputs> outputs_of(const runtime::Session& session, const std::vector<Sample>& samples) {
  Outputs outputs;
  for (const Sample& sample : samples) {
    HOLOGRAM_TRY(const auto results, session.run(sample));
    auto& own = outputs.emplace_back();  // results lie in the session's memory
    for (const kernels::Value& result : results) {
      HOLOGRAM_TRY(own.emplace_back(), result.clone());
    }
  }
  return outputs;
}

}  // namespace

Result<std::vector<std::byte>> compile_checked(const std::filesystem::path& model,
                                               const compiler::CompileOptions& options,
                                               const std::filesystem::path& folder) {
  const double promised = compiler::promised_error(options.precision);
  if (promised == 0)
    return fail(ErrorCode::invalid_argument, "--check is for --precision fast and bf16");
  compiler::CompileOptions plain{.shapes = options.shapes, .targets = {}};
  HOLOGRAM_TRY(const auto bytes, compiler::compile_onnx(model, plain));
  HOLOGRAM_TRY(const auto session, open_archive(bytes));
  HOLOGRAM_TRY(const auto samples, read_samples(folder, session.inputs()));
  HOLOGRAM_TRY(const Outputs exact, outputs_of(session, samples));
  const auto error_of = [&](const std::vector<std::byte>& archive) -> Result<double> {
    HOLOGRAM_TRY(const auto narrow, open_archive(archive));
    HOLOGRAM_TRY(const Outputs given, outputs_of(narrow, samples));
    double worst = 0;
    for (size_t i = 0; !exact.empty() && i < exact[0].size(); ++i) {
      const Accuracy accuracy = accuracy_of(exact, given, i);
      worst = std::max(worst, accuracy.largest / (accuracy.range > 0 ? accuracy.range : 1.0));
    }
    return worst;
  };
  const auto times_of = [&](std::span<const compiler::Trial::Archive> archives)
      -> Result<std::vector<compiler::Trial::Times>> {
    std::vector<runtime::Session> sessions;
    for (const auto& archive : archives) {
      HOLOGRAM_TRY(auto opened, open_archive(archive, options.key));
      sessions.push_back(std::move(opened));
    }
    const std::vector<Sample> first(sessions.size(), samples[0]);
    return runtime::times_in_turns(sessions, first);
  };
  HOLOGRAM_TRY(compiler::Within found,
               compiler::compile_within(model, options, compiler::aimed_error(options.precision),
                                        {error_of, times_of}));
  if (found.error > promised)
    return fail(
        ErrorCode::unsupported,
        "'{}' is off by {:.1e} of its range with all products widened; {:.0e} is asked for: "
        "use a wider --precision",
        model.string(), found.error, promised);
  if (found.f32)
    fmt::print(stderr, "{} samples: f32 is faster here, so all of it is f32\n", samples.size());
  else
    fmt::print(stderr, "{} samples: off by {:.1e} of the range, {} products widened\n",
               samples.size(), found.error, found.widened);
  return std::move(found.archive);
}

}  // namespace hologram::cli
