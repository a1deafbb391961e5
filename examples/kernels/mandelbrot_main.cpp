// The Mandelbrot set as a picture: mandelbrot [FILE.png]
#include "cli/image.h"
#include "example.h"

using namespace hologram;

int main(int argc, char** argv) {
  constexpr int64_t kWidth = 768, kHeight = 512;
  constexpr float kScale = 3.2f / kWidth;
  const auto executor = example::must(runtime::Executor::create());
  const auto mandelbrot = example::kernel("mandelbrot");
  const auto pixels = example::must(executor.empty(DType::u8, {kHeight, kWidth, 3}));
  example::must(executor.run(mandelbrot, pixels, -0.65f, 0.0f, kScale, uint32_t{200}));

  cli::Image image{static_cast<int>(kWidth), static_cast<int>(kHeight), {}};
  const auto view = example::must(pixels.view<const uint8_t>());
  image.rgb.assign(view.begin(), view.end());
  const std::string file = argc > 1 ? argv[1] : "mandelbrot.png";
  example::must(cli::write_png(file, image));

  // The middle of the set is black, a corner is not, and the picture is its own mirror image.
  const auto at = [&](int64_t x, int64_t y, int64_t c) {
    return image.rgb[static_cast<size_t>((y * kWidth + x) * 3 + c)];
  };
  example::expect(at(kWidth / 2, kHeight / 2, 2) == 0, "the middle is inside the set");
  example::expect(at(5, 5, 2) > 0, "the corner is outside the set");
  int64_t different = 0;
  for (int64_t y = 1; y < kHeight; ++y)
    for (int64_t x = 0; x < kWidth; ++x) different += at(x, y, 0) != at(x, kHeight - y, 0);
  example::expect(different == 0, "the set is symmetric");
  fmt::print("{} written\n", file);
}
