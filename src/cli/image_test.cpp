#include "cli/image.h"

#include <gtest/gtest.h>
#include <turbojpeg.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "support/file.h"

namespace hologram::cli {
namespace {

namespace fs = std::filesystem;

Image gradient(int width, int height) {
  Image image{width, height, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        image.rgb.push_back(static_cast<uint8_t>(c == 0   ? x * 255 / width
                                                 : c == 1 ? y * 255 / height
                                                          : 128));
  return image;
}

float at(const NpyArray& tensor, size_t index) {
  float value;
  std::memcpy(&value, tensor.data.data() + 4 * index, 4);
  return value;
}

TEST(Image, PngRoundTripsAndJpegIsClose) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("hologram-image-{}", getpid());
  fs::create_directories(folder);
  const Image image = gradient(37, 21);
  ASSERT_TRUE(write_png(folder / "a.png", image));
  const Image png = read_image(folder / "a.png").value();
  EXPECT_EQ(png.width, 37);
  EXPECT_EQ(png.rgb, image.rgb);

  tjhandle encoder = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  ASSERT_EQ(
      tjCompress2(encoder, image.rgb.data(), 37, 0, 21, TJPF_RGB, &bytes, &size, TJSAMP_444, 95, 0),
      0);
  ASSERT_TRUE(write_file(folder / "a.jpg", std::as_bytes(std::span(bytes, size))));
  const Image jpeg = read_image(folder / "a.jpg").value();
  ASSERT_EQ(jpeg.rgb.size(), image.rgb.size());
  for (size_t i = 0; i < jpeg.rgb.size(); ++i) EXPECT_NEAR(jpeg.rgb[i], image.rgb[i], 8);
  for (size_t cut : {3ul, 20ul, 100ul}) {
    ASSERT_TRUE(write_file(folder / "cut", std::as_bytes(std::span(bytes, cut))));
    EXPECT_FALSE(read_image(folder / "cut")) << cut;
  }
  tjFree(bytes);
  tjDestroy(encoder);
  ASSERT_TRUE(write_file(folder / "text", std::string_view("hello, world")));
  EXPECT_EQ(read_image(folder / "text").error().code(), ErrorCode::unsupported);
  fs::remove_all(folder);
}

TEST(Image, TensorsKeepValuesLayoutAndOrder) {
  Image image{2, 1, {10, 20, 30, 110, 120, 130}};
  const ImageOptions raw = ImageOptions::parse("raw").value();
  const NpyArray same = to_tensor(image, 2, 1, raw);
  EXPECT_EQ(same.shape, (std::vector<int64_t>{1, 3, 1, 2}));
  EXPECT_FLOAT_EQ(at(same, 0), 10);
  EXPECT_FLOAT_EQ(at(same, 1), 110);
  EXPECT_FLOAT_EQ(at(same, 2), 20);
  const NpyArray last =
      to_tensor(image, 2, 1, ImageOptions::parse("scale=1;layout=nhwc;order=bgr").value());
  EXPECT_EQ(last.shape, (std::vector<int64_t>{1, 1, 2, 3}));
  EXPECT_FLOAT_EQ(at(last, 0), 30);
  EXPECT_FLOAT_EQ(at(last, 2), 10);
  const NpyArray one = to_tensor(image, 1, 1, raw);
  EXPECT_FLOAT_EQ(at(one, 0), 60) << "shrinking averages";
  const NpyArray normal = to_tensor(image, 2, 1, ImageOptions::parse("mean=0.5;std=0.25").value());
  EXPECT_FLOAT_EQ(at(normal, 0), (10 / 255.0f - 0.5f) / 0.25f);
}

TEST(Image, CropKeepsTheRatio) {
  const Image image = gradient(64, 32);
  const NpyArray crop = to_tensor(image, 32, 32, ImageOptions::parse("scale=1;fit=crop").value());
  EXPECT_FLOAT_EQ(at(crop, 0), static_cast<float>(image.rgb[16 * 3]))
      << "the middle 32 columns, unscaled";
}

TEST(Image, RefusesBadOptions) {
  for (const char* text : {"mean=a", "mean=1,2", "std=0", "layout=chw", "colour=red", "scale=0"})
    EXPECT_EQ(ImageOptions::parse(text).error().code(), ErrorCode::invalid_argument) << text;
}

}  // namespace
}  // namespace hologram::cli
