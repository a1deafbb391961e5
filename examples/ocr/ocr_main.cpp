// Reads the text of a picture: PP-OCRv4's detector finds it, its recogniser reads it.
//
//   example_ocr DETECTOR.holo RECOGNISER.holo ppocr_keys_v1.txt PICTURE.ppm
#include <algorithm>
#include <cstdio>
#include <string>

#include "picture.h"
#include "runtime/session/session.h"
#include "support/file.h"

namespace {

using hologram::Result;
using hologram::Status;
using hologram::kernels::Tensor;
using hologram::kernels::Value;
using hologram::runtime::Session;

// One character a line; before them stands the blank, behind them the space.
Result<std::vector<std::string>> read_characters(const char* path) {
  HOLOGRAM_TRY(const hologram::FileMap file, hologram::FileMap::open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.size());
  std::vector<std::string> characters{""};
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    characters.emplace_back(line.substr(0, line.find('\r')));
    at = end + 1;
  }
  characters.emplace_back(" ");
  return characters;
}

Result<std::vector<ocr::Box>> detect(const Session& detector, const ocr::Picture& picture) {
  constexpr float kMean[3] = {0.485f, 0.456f, 0.406f}, kDeviation[3] = {0.229f, 0.224f, 0.225f};
  // The network halves its input five times.
  const int width = (picture.width() + 31) / 32 * 32, height = (picture.height() + 31) / 32 * 32;
  HOLOGRAM_TRY(const Tensor input,
               picture.to_tensor({0, 0, width, height}, width, height, kMean, kDeviation));
  const Value inputs[] = {input};
  HOLOGRAM_TRY(const auto outputs, detector.run(inputs));
  constexpr float kThreshold = 0.3f;
  constexpr int kLeastArea = 40;
  return ocr::find_boxes(outputs[0].tensor.as<float>(), width, height, kThreshold, kLeastArea);
}

// The likeliest character of every column; repeats count once, blanks part them.
Result<std::string> recognise(const Session& recogniser, const ocr::Picture& picture,
                              const ocr::Box& box, const std::vector<std::string>& characters) {
  constexpr float kHalf[3] = {0.5f, 0.5f, 0.5f};
  constexpr int kHeight = 48;
  const int width = std::max(kHeight, box.width() * kHeight / box.height());
  HOLOGRAM_TRY(const Tensor input, picture.to_tensor(box, width, kHeight, kHalf, kHalf));
  const Value inputs[] = {input};
  HOLOGRAM_TRY(const auto outputs, recogniser.run(inputs));
  const Tensor& scores = outputs[0].tensor;  // [1, columns, characters]
  if (scores.dims.size() != 3 || scores.dims[2] != static_cast<int64_t>(characters.size()))
    return hologram::fail(hologram::ErrorCode::shape_mismatch,
                          "the dictionary has {} characters, the model another number",
                          characters.size());
  std::string text;
  size_t before = 0;
  for (int64_t column = 0; column < scores.dims[1]; ++column) {
    const float* row = scores.as<float>() + column * scores.dims[2];
    const auto best = static_cast<size_t>(std::max_element(row, row + scores.dims[2]) - row);
    if (best != before) text += characters[best];
    before = best;
  }
  return text;
}

Status read(char** arguments) {
  HOLOGRAM_TRY(const Session detector, Session::open(arguments[1]));
  HOLOGRAM_TRY(const Session recogniser, Session::open(arguments[2]));
  HOLOGRAM_TRY(const std::vector<std::string> characters, read_characters(arguments[3]));
  HOLOGRAM_TRY(const ocr::Picture picture, ocr::Picture::open(arguments[4]));
  HOLOGRAM_TRY(const std::vector<ocr::Box> boxes, detect(detector, picture));
  for (const ocr::Box& box : boxes) {
    HOLOGRAM_TRY(const std::string text, recognise(recogniser, picture, box, characters));
    std::printf("%s\n", text.c_str());
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s DETECTOR.holo RECOGNISER.holo ppocr_keys_v1.txt PICTURE.ppm\n",
                 argv[0]);
    return 2;
  }
  const Status status = read(argv);
  if (!status) std::fprintf(stderr, "error: %s\n", status.error().to_string().c_str());
  return status ? 0 : 2;
}
