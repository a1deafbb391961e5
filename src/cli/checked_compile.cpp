#include "cli/checked_compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/calibration.h"
#include "cli/model_file.h"
#include "compiler/in_double.h"
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

// Of the model in f64.
Result<Outputs> outputs_in_double(const std::filesystem::path& model,
                                  const std::map<std::string, Shape, std::less<>>& shapes,
                                  std::vector<Sample> samples) {
  HOLOGRAM_TRY(const auto bytes, compiler::compile_in_double(model, shapes));
  HOLOGRAM_TRY(const auto session, open_archive(bytes));
  for (Sample& sample : samples)
    for (kernels::Value& value : sample) {
      HOLOGRAM_TRY(value.tensor, compiler::widened(value.tensor));
    }
  return outputs_of(session, samples);
}

// Of all outputs together, as part of their range.
Accuracy worst_of(const Outputs& exact, const Outputs& given) {
  Accuracy worst;
  for (size_t i = 0; !exact.empty() && i < exact[0].size(); ++i) {
    const Accuracy accuracy = accuracy_of(exact, given, i);
    const double range = accuracy.range > 0 ? accuracy.range : 1.0;
    worst.largest = std::max(worst.largest, accuracy.largest / range);
    worst.rms = std::max(worst.rms, accuracy.rms / range);
  }
  return worst;
}

}  // namespace

Result<std::vector<std::byte>> compile_checked(const std::filesystem::path& model,
                                               const compiler::CompileOptions& options,
                                               const std::filesystem::path& folder) {
  const double promised = compiler::promised_error(options.precision);
  if (promised == 0)
    return fail(ErrorCode::invalid_argument, "--check is for --precision f32, fast and bf16");
  const bool f32 = options.precision == compiler::Precision::f32;
  compiler::CompileOptions plain{.shapes = options.shapes, .targets = {}};
  HOLOGRAM_TRY(const auto bytes, compiler::compile_onnx(model, plain));
  HOLOGRAM_TRY(const auto session, open_archive(bytes));
  HOLOGRAM_TRY(const auto samples, read_samples(folder, session.inputs()));
  HOLOGRAM_TRY(const Outputs exact, f32 ? outputs_in_double(model, options.shapes, samples)
                                        : outputs_of(session, samples));
  const auto given_by = [&](const std::vector<std::byte>& archive) -> Result<Outputs> {
    HOLOGRAM_TRY(const auto narrow, open_archive(archive));
    return outputs_of(narrow, samples);
  };
  const auto errors_of = [&](const std::vector<std::byte>& archive) -> Result<Accuracy> {
    HOLOGRAM_TRY(const Outputs given, given_by(archive));
    return worst_of(exact, given);
  };
  compiler::SteadyError steady;
  const auto error_of = [&](const std::vector<std::byte>& archive) -> Result<double> {
    HOLOGRAM_TRY(const Outputs given, given_by(archive));
    if (!f32) return worst_of(exact, given).largest;
    std::vector<compiler::InputError> errors;
    for (size_t s = 0; s < given.size(); ++s) {
      const Accuracy worst = worst_of({exact[s]}, {given[s]});
      errors.push_back({worst.largest, worst.rms});
    }
    return steady.largest(errors);
  };
  const auto largest_of = [&](const std::vector<std::byte>& archive) -> Result<double> {
    HOLOGRAM_TRY(const Accuracy worst, errors_of(archive));
    return worst.largest;
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
                                        {error_of, times_of, largest_of}));
  HOLOGRAM_TRY(const Accuracy worst, errors_of(found.archive));
  found.error = worst.largest;
  if (found.error > promised)
    return fail(ErrorCode::unsupported,
                "'{}' is off by {:.1e} of its range{}; {:.0e} is asked for{}", model.string(),
                found.error,
                f32 ? " from f64, and more than is promised by sums of f64 as well"
                    : " with all products widened",
                promised, f32 ? "" : ": use a wider --precision");
  if (f32)
    fmt::print(stderr, "{} samples: off by {:.1e} of the range from f64, {}\n", samples.size(),
               found.error,
               found.widened == 0 ? "by sums of f32"
                                  : fmt::format("{} convolutions by sums of f64", found.widened));
  else if (found.f32)
    fmt::print(stderr, "{} samples: f32 is faster here, so all of it is f32\n", samples.size());
  else
    fmt::print(stderr, "{} samples: off by {:.1e} of the range, {} products widened\n",
               samples.size(), found.error, found.widened);
  return std::move(found.archive);
}

}  // namespace hologram::cli
