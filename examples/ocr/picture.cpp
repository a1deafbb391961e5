#include "picture.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

namespace ocr {

using hologram::ErrorCode;
using hologram::Result;
using hologram::kernels::Tensor;

Result<Picture> Picture::open(const std::filesystem::path& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return hologram::fail(ErrorCode::not_found, "cannot read '{}'", path.string());
  Picture picture;
  int most = 0;
  if (std::fscanf(file.get(), "P6 %d %d %d", &picture.width_, &picture.height_, &most) != 3 ||
      most != 255 || picture.width_ < 1 || picture.height_ < 1 || picture.width_ > 8192 ||
      picture.height_ > 8192)
    return hologram::fail(ErrorCode::unsupported,
                          "'{}' is no 8-bit PPM of at most 8192 x 8192: convert IN.png OUT.ppm",
                          path.string());
  std::fgetc(file.get());
  picture.rgb_.resize(static_cast<size_t>(picture.width_) * static_cast<size_t>(picture.height_) *
                      3);
  if (std::fread(picture.rgb_.data(), 1, picture.rgb_.size(), file.get()) != picture.rgb_.size())
    return hologram::fail(ErrorCode::corrupt, "'{}' is cut short", path.string());
  return picture;
}

float Picture::at(int x, int y, int channel) const {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return 1;
  const size_t index =
      3 * (static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x));
  return static_cast<float>(rgb_[index + static_cast<size_t>(channel)]) / 255;
}

Result<Tensor> Picture::to_tensor(const Box& box, int width, int height, const float (&mean)[3],
                                  const float (&deviation)[3]) const {
  HOLOGRAM_TRY(Tensor tensor, Tensor::allocate(hologram::DType::f32, {1, 3, height, width}));
  float* out = tensor.as<float>();
  const float scale_x = static_cast<float>(box.width()) / static_cast<float>(width);
  const float scale_y = static_cast<float>(box.height()) / static_cast<float>(height);
  for (int channel = 0; channel < 3; ++channel) {
    for (int y = 0; y < height; ++y) {
      const float sy =
          static_cast<float>(box.top) + (static_cast<float>(y) + 0.5f) * scale_y - 0.5f;
      const int y0 = static_cast<int>(std::floor(sy));
      const float fy = sy - static_cast<float>(y0);
      for (int x = 0; x < width; ++x) {
        const float sx =
            static_cast<float>(box.left) + (static_cast<float>(x) + 0.5f) * scale_x - 0.5f;
        const int x0 = static_cast<int>(std::floor(sx));
        const float fx = sx - static_cast<float>(x0);
        const int c = 2 - channel;
        const float above = at(x0, y0, c) * (1 - fx) + at(x0 + 1, y0, c) * fx;
        const float below = at(x0, y0 + 1, c) * (1 - fx) + at(x0 + 1, y0 + 1, c) * fx;
        *out++ = (above * (1 - fy) + below * fy - mean[channel]) / deviation[channel];
      }
    }
  }
  return tensor;
}

std::vector<Box> find_boxes(const float* map, int width, int height, float threshold,
                            int least_area) {
  std::vector<bool> seen(static_cast<size_t>(width) * static_cast<size_t>(height));
  const auto index = [&](int x, int y) {
    return static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x);
  };
  std::vector<Box> boxes;
  std::vector<std::pair<int, int>> open;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      if (seen[index(x, y)] || map[index(x, y)] <= threshold) continue;
      Box box{x, y, x + 1, y + 1};
      int area = 0;
      seen[index(x, y)] = true;
      open.assign(1, {x, y});
      while (!open.empty()) {
        const auto [px, py] = open.back();
        open.pop_back();
        ++area;
        box = {std::min(box.left, px), std::min(box.top, py), std::max(box.right, px + 1),
               std::max(box.bottom, py + 1)};
        for (const auto& [dx, dy] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}}) {
          const int nx = px + dx, ny = py + dy;
          if (nx < 0 || ny < 0 || nx >= width || ny >= height || seen[index(nx, ny)] ||
              map[index(nx, ny)] <= threshold)
            continue;
          seen[index(nx, ny)] = true;
          open.emplace_back(nx, ny);
        }
      }
      if (area < least_area) continue;
      constexpr float kGrow = 1.5f;
      const int grow =
          static_cast<int>(std::lround(kGrow * static_cast<float>(box.width() * box.height()) /
                                       static_cast<float>(2 * (box.width() + box.height()))));
      boxes.push_back({box.left - grow, box.top - grow, box.right + grow, box.bottom + grow});
    }
  }
  // Boxes whose middles are within half a height of each other stand on one line.
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.top < b.top; });
  for (size_t begin = 0; begin < boxes.size();) {
    size_t end = begin + 1;
    while (end < boxes.size() && boxes[end].top < boxes[begin].top + boxes[begin].height() / 2)
      ++end;
    std::sort(boxes.begin() + static_cast<ptrdiff_t>(begin),
              boxes.begin() + static_cast<ptrdiff_t>(end),
              [](const Box& a, const Box& b) { return a.left < b.left; });
    begin = end;
  }
  return boxes;
}

}  // namespace ocr
