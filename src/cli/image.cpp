#include "cli/image.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

namespace hologram::cli {
namespace {

Status parse_floats(std::string_view text, float (&values)[3]) {
  int count = 0;
  while (count < 3) {
    const size_t comma = std::min(text.find(','), text.size());
    const auto [end, error] = std::from_chars(text.data(), text.data() + comma, values[count]);
    if (error != std::errc() || end != text.data() + comma)
      return fail(ErrorCode::invalid_argument, "'{}' is not a number", text.substr(0, comma));
    ++count;
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  if (count == 1) values[1] = values[2] = values[0];
  if (count == 2)
    return fail(ErrorCode::invalid_argument, "write one number, or three: red, green, blue");
  return {};
}

// Weights of source pixels for one target pixel along one axis: a triangle as wide as the step.
struct Taps {
  int first;
  std::vector<float> weights;
};

std::vector<Taps> make_taps(int source, int target, double offset, double step) {
  std::vector<Taps> taps(static_cast<size_t>(target));
  const double radius = std::max(1.0, step);
  for (int i = 0; i < target; ++i) {
    const double centre = offset + (i + 0.5) * step - 0.5;
    const int first = static_cast<int>(std::ceil(centre - radius)),
              last = static_cast<int>(std::floor(centre + radius));
    Taps& tap = taps[static_cast<size_t>(i)];
    tap.first = std::clamp(first, 0, source - 1);
    float sum = 0;
    tap.weights.assign(static_cast<size_t>(std::clamp(last, 0, source - 1) - tap.first + 1), 0.0f);
    for (int j = first; j <= last; ++j) {  // past the border the edge pixel repeats
      const auto weight = static_cast<float>(std::max(0.0, 1 - std::fabs(j - centre) / radius));
      tap.weights[static_cast<size_t>(std::clamp(j, 0, source - 1) - tap.first)] += weight;
      sum += weight;
    }
    for (float& weight : tap.weights) weight /= sum;
  }
  return taps;
}

}  // namespace

Result<ImageOptions> ImageOptions::parse(std::string_view text) {
  ImageOptions options;
  if (text == "imagenet") return parse("mean=0.485,0.456,0.406;std=0.229,0.224,0.225;fit=crop");
  if (text == "unit") return options;
  if (text == "signed") return parse("mean=0.5;std=0.5");
  if (text == "raw") return parse("scale=1");
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : item.substr(equals + 1);
    float scale[3];
    if (key == "mean") {
      HOLOGRAM_CHECK(parse_floats(value, options.mean));
    } else if (key == "std") {
      HOLOGRAM_CHECK(parse_floats(value, options.std));
      for (const float deviation : options.std)
        if (deviation == 0) return fail(ErrorCode::invalid_argument, "std cannot be 0");
    } else if (key == "scale") {
      HOLOGRAM_CHECK(parse_floats(value, scale));
      if (scale[0] == 0) return fail(ErrorCode::invalid_argument, "scale cannot be 0");
      options.scale = scale[0];
    } else if (key == "layout" && (value == "nchw" || value == "nhwc")) {
      options.channels_first = value == "nchw";
    } else if (key == "order" && (value == "rgb" || value == "bgr")) {
      options.bgr = value == "bgr";
    } else if (key == "fit" && (value == "crop" || value == "stretch")) {
      options.keep_ratio = value == "crop";
    } else {
      return fail(ErrorCode::invalid_argument,
                  "'{}' is not an image option: imagenet, unit, signed, raw, or some of mean=r,g,b "
                  "std=r,g,b "
                  "scale=x layout=nchw|nhwc order=rgb|bgr fit=stretch|crop, separated by ';'",
                  item);
    }
  }
  return options;
}

NpyArray to_tensor(const Image& image, int width, int height, const ImageOptions& options) {
  double step_x = static_cast<double>(image.width) / width,
         step_y = static_cast<double>(image.height) / height;
  if (options.keep_ratio) step_x = step_y = std::min(step_x, step_y);
  const auto columns = make_taps(image.width, width, (image.width - step_x * width) / 2, step_x);
  const auto rows = make_taps(image.height, height, (image.height - step_y * height) / 2, step_y);

  // Rows first, then columns: the two directions are independent.
  std::vector<float> wide(static_cast<size_t>(height) * static_cast<size_t>(image.width) * 3, 0.0f);
  for (int y = 0; y < height; ++y) {
    float* out = wide.data() + static_cast<size_t>(y) * static_cast<size_t>(image.width) * 3;
    const Taps& tap = rows[static_cast<size_t>(y)];
    for (size_t k = 0; k < tap.weights.size(); ++k) {
      const uint8_t* in = image.rgb.data() + (static_cast<size_t>(tap.first) + k) *
                                                 static_cast<size_t>(image.width) * 3;
      for (int i = 0; i < image.width * 3; ++i) out[i] += tap.weights[k] * in[i];
    }
  }
  NpyArray tensor{DType::f32, {1, 3, height, width}, {}};
  if (!options.channels_first) tensor.shape = {1, height, width, 3};
  std::vector<float> values(static_cast<size_t>(height) * static_cast<size_t>(width) * 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const Taps& tap = columns[static_cast<size_t>(x)];
      for (int c = 0; c < 3; ++c) {
        float sum = 0;
        for (size_t k = 0; k < tap.weights.size(); ++k)
          sum += tap.weights[k] * wide[(static_cast<size_t>(y) * static_cast<size_t>(image.width) +
                                        static_cast<size_t>(tap.first) + k) *
                                           3 +
                                       static_cast<size_t>(c)];
        const int channel = options.bgr ? 2 - c : c;
        const float value = (sum / options.scale - options.mean[channel]) / options.std[channel];
        const int at = options.channels_first ? (channel * height + y) * width + x
                                              : (y * width + x) * 3 + channel;
        values[static_cast<size_t>(at)] = value;
      }
    }
  }
  const auto bytes = std::as_bytes(std::span(values));
  tensor.data.assign(bytes.begin(), bytes.end());
  return tensor;
}

}  // namespace hologram::cli
