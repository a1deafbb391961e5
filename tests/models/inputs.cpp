#include "inputs.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace hologram::models {
namespace {

using nlohmann::ordered_json;
using peers::PeerTensor;

// Harmonics of a gliding pitch under an envelope of syllables, with a little noise.
double speech(int64_t sample, std::mt19937& random) {
  const double seconds = static_cast<double>(sample) / 16000;
  const double pitch = 2 * M_PI * (120 * seconds + 15 * seconds * seconds);
  const double envelope = 0.5 + 0.5 * std::sin(2 * M_PI * 4 * seconds + 1);
  double sum = 0;
  for (int harmonic = 1; harmonic <= 12; ++harmonic)
    sum += std::sin(harmonic * pitch + harmonic) / harmonic;
  return 0.3 * envelope * sum + 0.01 * (static_cast<double>(random() % 2001) / 1000 - 1);
}

// The letters of HOLOGRAM, five by seven: text for what looks for text.
constexpr const char* kLetters[7] = {
    "#...# .### #.... .### .### ####. .### #...#", "#...# #..# #.... #..# #... #...# #..# ##.##",
    "#...# #..# #.... #..# #... #...# #..# #.#.#", "##### #..# #.... #..# #.## ####. #### #...#",
    "#...# #..# #.... #..# #..# #.#.. #..# #...#", "#...# #..# #.... #..# #..# #..#. #..# #...#",
    "#...# .### ####. .### .### #...# #..# #...#"};

// Dark letters and a disc on a shaded ground, by position in an image of `height` x `width`.
double picture(int64_t y, int64_t x, int64_t height, int64_t width, int64_t channel) {
  const double v = static_cast<double>(y) / static_cast<double>(height);
  const double u = static_cast<double>(x) / static_cast<double>(width);
  double shade = 0.8 - 0.3 * v + 0.1 * std::sin(20 * u + static_cast<double>(channel));
  if ((u - 0.8) * (u - 0.8) + (v - 0.3) * (v - 0.3) < 0.02)
    shade = 0.2 * static_cast<double>(channel) - 0.3;
  const int64_t cell = std::max<int64_t>(1, std::min(height, width) / 16);
  const int64_t row = (y - height / 4) / cell, column = (x - cell) / cell;
  if (y >= height / 4 && row < 7 && x >= cell && column < 43 && kLetters[row][column] == '#')
    shade = -0.9;
  return shade;
}

Result<double> element(const ordered_json& rule, const PeerTensor& tensor, int64_t index,
                       int64_t count, uint32_t draw, std::mt19937& random) {
  const ordered_json& fill = rule["fill"];
  const double scale = rule.value("scale", 1.0);
  if (fill.is_number()) return fill.get<double>();
  if (fill == "normal")
    return scale * static_cast<double>(std::normal_distribution<float>()(random));
  if (fill == "speech") return scale * speech(index + 997 * draw, random);
  if (fill == "tokens") return static_cast<double>(random() % rule.value("below", 1000u));
  if (fill == "mask") return index < count - count / 8 ? 1 : 0;
  if (fill == "picture" && tensor.shape.size() == 4) {
    const int64_t width = tensor.shape[3], height = tensor.shape[2];
    const int64_t y = (index / width + draw * height / 64) % height;
    const int64_t x = (index + draw * width / 23) % width;
    const double noise = draw == 0 ? 0 : 0.02 * (static_cast<double>(random() % 2001) / 1000 - 1);
    return scale * (picture(y, x, height, width, index / (width * height) % 3) + noise);
  }
  return fail(ErrorCode::invalid_argument, "input '{}': no fill {}", tensor.name, fill.dump());
}

template <typename T>
void store(std::byte* at, double value) {
  const T element = static_cast<T>(value);
  std::memcpy(at, &element, sizeof(T));
}

}  // namespace

Result<std::vector<PeerTensor>> make_inputs(const std::vector<PeerTensor>& ports,
                                            const ordered_json& run, uint32_t draw) {
  std::mt19937 random(7 + draw);
  std::vector<PeerTensor> inputs = ports;
  for (PeerTensor& tensor : inputs) {
    const auto& rules = run.items();
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const auto& item) {
      return fnmatch(item.key().c_str(), tensor.name.c_str(), 0) == 0;
    });
    if (rule == rules.end())
      return fail(ErrorCode::invalid_argument, "input '{}' is not in the table", tensor.name);
    if (rule.value().contains("shape"))
      tensor.shape = rule.value()["shape"].get<std::vector<int64_t>>();
    int64_t count = 1;
    for (const int64_t dim : tensor.shape) {
      if (dim < 0)
        return fail(ErrorCode::invalid_argument, "input '{}' has open dimensions", tensor.name);
      count *= dim;
    }
    tensor.data.resize(bytes_for(tensor.type, static_cast<uint64_t>(count)));
    for (int64_t i = 0; i < count; ++i) {
      HOLOGRAM_TRY(const double value, element(rule.value(), tensor, i, count, draw, random));
      std::byte* at = tensor.data.data() + static_cast<size_t>(i) * size_of(tensor.type);
      if (tensor.type == DType::f32)
        store<float>(at, value);
      else if (tensor.type == DType::i64)
        store<int64_t>(at, value);
      else if (tensor.type == DType::boolean)
        store<uint8_t>(at, value);
      else
        return fail(ErrorCode::unsupported, "input '{}' is {}", tensor.name, name_of(tensor.type));
    }
  }
  return inputs;
}

}  // namespace hologram::models
