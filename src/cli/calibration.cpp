#include "cli/calibration.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/tensor_input.h"
#include "compiler/compile.h"
#include "onnx/model.h"
#include "support/aligned.h"

namespace hologram::cli {
namespace {

namespace fs = std::filesystem;
using kernels::Value;

Result<std::vector<fs::path>> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  if (error)
    return fail(ErrorCode::not_found, "{}: {}; --calibrate, like --check, takes a folder of inputs",
                folder.string(), error.message());
  std::ranges::sort(entries);
  return entries;
}

// "input_3" -> 3; otherwise -1.
int64_t numbered(const std::string& stem) {
  if (!stem.starts_with("input_")) return -1;
  int64_t number = 0;
  for (const char c : stem.substr(6)) {
    if (c < '0' || c > '9' || number > 9999) return -1;
    number = number * 10 + (c - '0');
  }
  return stem.size() > 6 ? number : -1;
}

// Files that are one input each, as one sample.
Result<Sample> joined(const std::vector<fs::path>& files,
                      std::span<const runtime::PortInfo> ports) {
  InputOptions options;
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string();
    const int64_t number = numbered(stem);
    const bool counts = number >= 0 && number < static_cast<int64_t>(ports.size());
    options.files.push_back((counts ? ports[static_cast<size_t>(number)].name : stem) + "=" +
                            file.string());
  }
  return read_inputs(ports, options);
}

constexpr size_t kBins = 2048;

// What was seen of one activation.
struct Histogram {
  float low = 0, high = 0;
  std::vector<double> bins = {};

  void extend(std::span<const float> values) {
    for (const float v : values)
      if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  }
  void count(std::span<const float> values) {
    bins.resize(kBins, 0.0);
    const double step = (static_cast<double>(high) - low) / kBins;
    if (!(step > 0)) return;
    for (const float v : values)
      if (std::isfinite(v))
        bins[std::min(kBins - 1, static_cast<size_t>(std::max(0.0, (v - low) / step)))] += 1;
  }
  // Of values between `from` and `to` as one of 256 codes, and of others cut off there.
  double squared_error(double from, double to) const {
    const double step = (static_cast<double>(high) - low) / kBins, code = (to - from) / 255;
    double sum = 0;
    for (size_t i = 0; i < bins.size(); ++i) {
      const double value = low + (static_cast<double>(i) + 0.5) * step;
      const double beyond = value < from ? from - value : value > to ? value - to : 0;
      sum += bins[i] * (beyond * beyond + code * code / 12);
    }
    return sum;
  }
  onnx::ActivationRange range(RangeMethod method) const {
    if (method == RangeMethod::extremes || bins.empty() || !(high > low)) return {low, high};
    double from = low, to = high, least = squared_error(from, to);
    // One end after the other, twice: each changes what the other is worth.
    for (int turn = 0; turn < 2; ++turn)
      for (const bool upper : {true, false})
        for (int part = 39; part >= 4; --part) {
          const double end = (upper ? high : low) * part / 40.0;
          const double error = upper ? squared_error(from, end) : squared_error(end, to);
          if (error >= least) continue;
          least = error;
          (upper ? to : from) = end;
        }
    return {static_cast<float>(from), static_cast<float>(to)};
  }
};

}  // namespace

Result<RangeMethod> parse_range_method(std::string_view name) {
  if (name == "mse") return RangeMethod::least_squares;
  if (name == "minmax") return RangeMethod::extremes;
  return fail(ErrorCode::invalid_argument, "no method '{}'; there are mse and minmax", name);
}

Result<std::vector<Sample>> read_samples(const fs::path& folder,
                                         std::span<const runtime::PortInfo> ports) {
  HOLOGRAM_TRY(const auto entries, entries_of(folder));
  std::vector<Sample> samples;
  std::vector<fs::path> loose;
  for (const fs::path& entry : entries) {
    const std::string extension = entry.extension().string();
    if (fs::is_directory(entry)) {
      HOLOGRAM_TRY(const auto inside, entries_of(entry));
      std::vector<fs::path> files;
      for (const fs::path& file : inside)
        if ((file.extension() == ".npy" || file.extension() == ".pb") &&
            !file.stem().string().starts_with("output_"))
          files.push_back(file);
      if (files.empty()) continue;
      HOLOGRAM_TRY(Sample sample, in_context(joined(files, ports), [&] { return entry.string(); }));
      samples.push_back(std::move(sample));
    } else if (extension == ".npz" ||
               (ports.size() == 1 && (extension == ".npy" || extension == ".pb"))) {
      HOLOGRAM_TRY(Sample sample, in_context(read_inputs(ports, {.files = {entry.string()}}),
                                             [&] { return entry.string(); }));
      samples.push_back(std::move(sample));
    } else if (extension == ".npy" || extension == ".pb") {
      loose.push_back(entry);
    }
  }
  if (!loose.empty()) {
    HOLOGRAM_TRY(Sample sample, in_context(joined(loose, ports), [&] { return folder.string(); }));
    samples.push_back(std::move(sample));
  }
  if (samples.empty())
    return fail(ErrorCode::not_found,
                "{} holds no inputs. Put one .npz a sample there, written for example by "
                "numpy.savez('sample0.npz', {}=array), or folders of .npy or .pb files; the model "
                "takes\n{}",
                folder.string(), ports.empty() ? "name" : ports[0].name, describe(ports));
  return samples;
}

Result<Measured> measure_ranges(const fs::path& model, const std::vector<std::string>& names,
                                const fs::path& folder, RangeMethod method,
                                std::vector<Sample>& samples) {
  HOLOGRAM_TRY(graph::Graph graph, onnx::read_model(model));
  std::map<std::string, graph::ValueId> ids;
  for (graph::ValueId id = 0; id < graph.value_count(); ++id) ids.emplace(graph.value(id).name, id);
  Measured measured;
  measured.output_names = graph.output_names;
  // Where each is found: among the inputs, or among the outputs, to which it may have to be added.
  struct Place {
    bool input;
    size_t index;
  };
  std::vector<Place> places;
  for (const std::string& name : names) {
    const auto found = ids.find(name);
    if (found == ids.end()) return fail(ErrorCode::internal, "'{}' is no value of the graph", name);
    const auto input = std::ranges::find(graph.inputs, found->second);
    if (input != graph.inputs.end()) {
      places.push_back({true, static_cast<size_t>(input - graph.inputs.begin())});
      continue;
    }
    auto output = std::ranges::find(graph.outputs, found->second);
    if (output == graph.outputs.end()) {
      graph.outputs.push_back(found->second);
      graph.output_names.push_back("activation " + name);
      output = graph.outputs.end() - 1;
    }
    places.push_back({false, static_cast<size_t>(output - graph.outputs.begin())});
  }
  HOLOGRAM_TRY(const auto bytes,
               in_context(compiler::compile(std::move(graph)), [&] { return model.string(); }));
  HOLOGRAM_TRY(AlignedBytes memory, AlignedBytes::allocate(bytes.size()));
  std::ranges::copy(bytes, memory.data());
  auto owner = std::make_shared<AlignedBytes>(std::move(memory));
  HOLOGRAM_TRY(archive::Archive archive, archive::Archive::open(owner->bytes(), owner));
  HOLOGRAM_TRY(const runtime::Session session, runtime::Session::open(std::move(archive)));
  HOLOGRAM_TRY(samples, read_samples(folder, session.inputs()));

  std::vector<Histogram> histograms(names.size());
  const int passes = method == RangeMethod::extremes ? 1 : 2;
  for (int pass = 0; pass < passes; ++pass)
    for (size_t s = 0; s < samples.size(); ++s) {
      auto results = in_context(session.run(samples[s]), [&] {
        return fmt::format("sample {} of {}", s + 1, folder.string());
      });
      if (!results) return std::unexpected(results.error());
      for (size_t i = 0; i < names.size(); ++i) {
        const Value& value =
            places[i].input ? samples[s][places[i].index] : (*results)[places[i].index];
        if (!value.is_tensor() || value.tensor.dtype != DType::f32)
          return fail(ErrorCode::unsupported, "'{}' is not f32", names[i]);
        const auto values = value.tensor.span<float>();
        if (pass == 0)
          histograms[i].extend(values);
        else
          histograms[i].count(values);
      }
      if (pass == 0) {
        results->resize(measured.output_names.size());
        measured.outputs.push_back(*std::move(results));
      }
    }
  for (size_t i = 0; i < names.size(); ++i) measured.ranges[names[i]] = histograms[i].range(method);
  return measured;
}

Accuracy accuracy_of(const std::vector<std::vector<Value>>& exact,
                     const std::vector<std::vector<Value>>& given, size_t output) {
  Accuracy a;
  double low = HUGE_VAL, high = -HUGE_VAL, squares = 0, power = 0, count = 0;
  for (size_t s = 0; s < exact.size(); ++s) {
    const kernels::Tensor &x = exact[s][output].tensor, &y = given[s][output].tensor;
    const bool wide = x.dtype == DType::f64;
    if ((!wide && x.dtype != DType::f32) || y.dtype != DType::f32 || x.count() != y.count())
      continue;
    for (int64_t i = 0; i < x.count(); ++i) {
      const double e = wide ? x.as<double>()[i] : double{x.as<float>()[i]};
      const double d = y.as<float>()[i] - e;
      low = std::min(low, e), high = std::max(high, e);
      a.largest = std::max(a.largest, std::abs(d));
      squares += d * d, power += e * e, count += 1;
    }
  }
  if (count == 0) return a;
  a.rms = std::sqrt(squares / count);
  a.range = high - low;
  a.decibels = squares == 0 ? HUGE_VAL : 10 * std::log10(power / squares);
  return a;
}

}  // namespace hologram::cli
