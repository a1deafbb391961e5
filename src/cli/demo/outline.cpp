#include "cli/demo/outline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "runtime/session/session.h"
#include "support/file.h"

namespace hologram::cli {
namespace {

using Writer = protozero::pbf_writer;

// Sobel's two filters: how fast brightness grows to the right, and downwards.
constexpr std::array<float, 18> kFilters = {-1, 0,  1,  -2, 0, 2, -1, 0, 1,  //
                                            -1, -2, -1, 0,  0, 0, 1,  2, 1};

// The model in ONNX's protobuf; the numbers are the fields of onnx.proto.
enum : int { kFloatType = 1, kInt64Type = 7 };

std::string port(const char* name) {
  std::string shape, tensor, type, bytes;
  Writer dims(shape);
  for (const char* symbol : {"", "", "height", "width"}) {
    std::string dim;
    if (*symbol)
      Writer(dim).add_string(2, symbol);
    else
      Writer(dim).add_int64(1, 1);
    dims.add_message(1, dim);
  }
  Writer t(tensor);
  t.add_int32(1, kFloatType);
  t.add_message(2, shape);
  Writer(type).add_message(1, tensor);
  Writer w(bytes);
  w.add_string(1, name);
  w.add_message(2, type);
  return bytes;
}

std::string node(const char* op, std::initializer_list<const char*> inputs, const char* output,
                 const std::string& attribute = {}) {
  std::string bytes;
  Writer w(bytes);
  for (const char* input : inputs) w.add_string(1, input);
  w.add_string(2, output);
  w.add_string(4, op);
  if (!attribute.empty()) w.add_message(5, attribute);
  return bytes;
}

std::string constant(const char* name, int type, const std::vector<int64_t>& dims, const void* data,
                     size_t size) {
  std::string bytes;
  Writer w(bytes);
  w.add_packed_int64(1, dims.begin(), dims.end());
  w.add_int32(2, type);
  w.add_string(8, name);
  w.add_bytes(9, static_cast<const char*>(data), size);
  return bytes;
}

// outline = sqrt(sum over both filters of conv(picture)^2), for pictures of any size.
std::string outline_model() {
  std::string pads, graph, opset, model;
  Writer p(pads);
  p.add_string(1, "pads");
  constexpr int64_t kPads[] = {1, 1, 1, 1};
  p.add_packed_int64(8, std::begin(kPads), std::end(kPads));
  p.add_int32(20, 7);
  constexpr int64_t kChannels = 1;
  Writer g(graph);
  g.add_message(1, node("Conv", {"picture", "filters"}, "slopes", pads));
  g.add_message(1, node("Mul", {"slopes", "slopes"}, "squares"));
  g.add_message(1, node("ReduceSum", {"squares", "channels"}, "sums"));
  g.add_message(1, node("Sqrt", {"sums"}, "outline"));
  g.add_string(2, "outline");
  g.add_message(5, constant("filters", kFloatType, {2, 1, 3, 3}, kFilters.data(), sizeof kFilters));
  g.add_message(5, constant("channels", kInt64Type, {1}, &kChannels, sizeof kChannels));
  g.add_message(11, port("picture"));
  g.add_message(12, port("outline"));
  Writer(opset).add_int64(2, 17);
  Writer m(model);
  m.add_int64(1, 8);
  m.add_message(7, graph);
  m.add_message(8, opset);
  return model;
}

Result<kernels::Value> as_input(const Picture& picture) {
  const std::vector<float> brightness(picture.steps.begin(), picture.steps.end());
  HOLOGRAM_TRY(kernels::Tensor tensor,
               kernels::Tensor::from(kernels::Dims{1, 1, picture.height, picture.width},
                                     std::span<const float>(brightness)));
  return kernels::Value(std::move(tensor));
}

// The same by plain loops, in double precision.
std::vector<double> outline_of(const Picture& picture) {
  const auto width = static_cast<int64_t>(picture.width);
  const auto height = static_cast<int64_t>(picture.height);
  std::vector<double> outline(picture.steps.size());
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      double slopes[2] = {};
      for (int64_t tap = 0; tap < 9; ++tap) {
        const int64_t row = y + tap / 3 - 1, column = x + tap % 3 - 1;
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        const double pixel = picture.steps[static_cast<size_t>(row * width + column)];
        for (size_t filter = 0; filter < 2; ++filter)
          slopes[filter] += kFilters[filter * 9 + static_cast<size_t>(tap)] * pixel;
      }
      outline[static_cast<size_t>(y * width + x)] = std::hypot(slopes[0], slopes[1]);
    }
  return outline;
}

Status compare(const kernels::Tensor& computed, const Picture& picture) {
  const std::vector<double> expected = outline_of(picture);
  const auto values = computed.span<float>();
  if (values.size() != expected.size())
    return fail(ErrorCode::internal, "the model's answer has {} values, not {}", values.size(),
                expected.size());
  double error = 0, range = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::abs(values[i] - expected[i]));
    range = std::max(range, expected[i]);
  }
  if (!(error <= 1e-6 * range))
    return fail(ErrorCode::internal, "the model's answer differs by {:.2g} of its range",
                error / range);
  fmt::print("compare    {} values with plain loops in f64: within {:.1g} of the range\n\n",
             values.size(), error / range);
  return {};
}

void draw(const kernels::Tensor& outline, const Picture& picture) {
  constexpr float kEdge = 40;
  for (uint32_t y = 0; y < picture.height; ++y) {
    std::string line = "    ";
    for (uint32_t x = 0; x < picture.width; ++x)
      line += outline.as<float>()[size_t{y} * picture.width + x] > kEdge ? '#' : ' ';
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

void report(std::string_view step, std::string_view what, double milliseconds) {
  fmt::print("{:<11}{:<41}{:10.3f} ms\n", step, what, milliseconds);
}

}  // namespace

Status demonstrate_model(const std::filesystem::path& folder, const Picture& large,
                         const Picture& small) {
  const std::filesystem::path model = folder / "outline.onnx", archive = folder / "outline.holo";
  fmt::print("A model in ONNX, for pictures of any size:\n\n");
  fmt::print("    picture -> Conv 3x3 -> Mul -> ReduceSum -> Sqrt -> outline\n\n");
  HOLOGRAM_CHECK(write_file(model, outline_model()));

  // Native code is run for keys that are trusted: here one made for the occasion.
  compiler::CompileOptions options;
  HOLOGRAM_TRY(options.key, archive::KeyPair::generate());
  const auto trusted =
      std::make_shared<archive::TrustedKeys>(std::vector{options.key->public_key()});
  const Clock compiling;
  HOLOGRAM_TRY(const std::vector<std::byte> bytes, compiler::compile_onnx(model, options));
  HOLOGRAM_CHECK(write_file(archive, bytes));
  report("compile", fmt::format("outline.onnx to outline.holo, {} bytes", bytes.size()),
         compiling.milliseconds());

  const Clock opening;
  HOLOGRAM_TRY(const runtime::Session session,
               runtime::Session::open(archive, {.trusted = trusted}));
  report("open", "the archive: mapped and checked", opening.milliseconds());

  HOLOGRAM_TRY(const kernels::Value input, as_input(large));
  HOLOGRAM_TRY(kernels::Tensor outline, kernels::Tensor::allocate(DType::f32, input.tensor.dims));
  const auto run = [&] { return session.run_into({&input, 1}, {&outline, 1}); };
  const Clock first;
  HOLOGRAM_CHECK(run());
  report("run", fmt::format("{} x {} pixels, the first time", large.width, large.height),
         first.milliseconds());
  const Clock later;
  HOLOGRAM_CHECK(run());
  report("run", "again: nothing is allocated", later.milliseconds());
  HOLOGRAM_CHECK(compare(outline, large));

  HOLOGRAM_TRY(const kernels::Value small_input, as_input(small));
  HOLOGRAM_TRY(const std::vector<kernels::Value> drawn, session.run({&small_input, 1}));
  draw(drawn[0].tensor, small);
  return {};
}

}  // namespace hologram::cli
