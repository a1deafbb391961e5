// Pictures as model inputs: resized and normalised into a tensor.
#pragma once

#include <cstdint>
#include <string_view>

#include "image/image.h"
#include "support/npy.h"
#include "support/result.h"

namespace hologram::cli {

using image::Image;
using image::read_image;
using image::write_png;

// How a picture becomes a tensor: value = (pixel / scale - mean) / std.
struct ImageOptions {
  float mean[3] = {0, 0, 0};
  float std[3] = {1, 1, 1};
  float scale = 255;
  bool channels_first = true;  // layout nchw; otherwise nhwc
  bool bgr = false;
  bool keep_ratio = false;  // scale the shorter side, then crop the middle

  // "mean=0.485,0.456,0.406;std=0.229,0.224,0.225;layout=nchw;order=bgr;fit=crop;scale=255", or
  // the name of a usual recipe: "imagenet", "unit" (0..1), "signed" (-1..1), "raw" (0..255).
  static Result<ImageOptions> parse(std::string_view text);
};

// An f32 tensor of shape [1, 3, height, width] or [1, height, width, 3]. Bilinear, sampled at
// pixel centres; shrinking averages first, so that no detail aliases.
NpyArray to_tensor(const Image& image, int width, int height, const ImageOptions& options);

}  // namespace hologram::cli
