// A picture in memory, and the two things that reading text does to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "backends/cpu/kernels/tensor.h"
#include "support/result.h"

namespace ocr {

struct Box {
  int left, top, right, bottom;  // right and bottom are one past the last
  int width() const { return right - left; }
  int height() const { return bottom - top; }
};

// Eight bits a channel, rows from the top, red-green-blue.
class Picture {
 public:
  // A binary PPM (P6), what `convert in.png out.ppm` writes.
  static hologram::Result<Picture> open(const std::filesystem::path& path);

  int width() const { return width_; }
  int height() const { return height_; }

  // f32 [1, 3, height, width] of the part `box`, scaled bilinearly; outside of the picture it is
  // white. Each value is (pixel / 255 - mean) / deviation; channels are blue, green, red, as the
  // models were trained.
  hologram::Result<hologram::kernels::Tensor> to_tensor(const Box& box, int width, int height,
                                                        const float (&mean)[3],
                                                        const float (&deviation)[3]) const;

 private:
  float at(int x, int y, int channel) const;
  int width_ = 0, height_ = 0;
  std::vector<uint8_t> rgb_;
};

// Where `map` (height x width) is over `threshold`: one box a connected part of at least
// `least_area` pixels, grown by what the detector was trained to shrink text by. From the top to
// the bottom, lines from the left to the right.
std::vector<Box> find_boxes(const float* map, int width, int height, float threshold,
                            int least_area);

}  // namespace ocr
