#include "image/image.h"

#include <gmock/gmock.h>
#include <openjpeg.h>
#include <tiffio.h>
#include <turbojpeg.h>
#include <unistd.h>
#include <webp/encode.h>

#include <filesystem>

#include "support/file.h"

namespace hologram::image {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

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

// Files of one picture in a folder that goes away.
class Formats : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path jpeg() const {
    unsigned char* bytes = nullptr;
    unsigned long size = 0;
    tjhandle encoder = tjInitCompress();
    EXPECT_EQ(tjCompress2(encoder, picture_.rgb.data(), picture_.width, 0, picture_.height,
                          TJPF_RGB, &bytes, &size, TJSAMP_444, 95, 0),
              0);
    const fs::path path = store("a.jpg", std::span(bytes, size));
    tjFree(bytes);
    tjDestroy(encoder);
    return path;
  }
  fs::path webp() const {
    uint8_t* bytes = nullptr;
    const size_t size = WebPEncodeLosslessRGB(picture_.rgb.data(), picture_.width, picture_.height,
                                              3 * picture_.width, &bytes);
    const fs::path path = store("a.webp", std::span(bytes, size));
    WebPFree(bytes);
    return path;
  }
  fs::path tiff(int compression) const {
    const fs::path path = folder_ / ("a" + std::to_string(compression) + ".tif");
    TIFF* file = TIFFOpen(path.c_str(), "w");
    TIFFSetField(file, TIFFTAG_IMAGEWIDTH, picture_.width);
    TIFFSetField(file, TIFFTAG_IMAGELENGTH, picture_.height);
    TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    TIFFSetField(file, TIFFTAG_COMPRESSION, compression);
    std::vector<uint8_t> row(3 * static_cast<size_t>(picture_.width));
    for (int y = 0; y < picture_.height; ++y) {
      std::copy_n(picture_.rgb.begin() + y * 3 * picture_.width, row.size(), row.begin());
      TIFFWriteScanline(file, row.data(), static_cast<uint32_t>(y), 0);
    }
    TIFFClose(file);
    return path;
  }
  // Without loss, as a code stream in boxes.
  fs::path jpeg2000() const {
    const fs::path path = folder_ / "a.jp2";
    opj_image_cmptparm_t size[3] = {};
    for (auto& c : size)
      c.w = static_cast<OPJ_UINT32>(picture_.width), c.h = static_cast<OPJ_UINT32>(picture_.height),
      c.prec = 8, c.dx = c.dy = 1;
    opj_image_t* image = opj_image_create(3, size, OPJ_CLRSPC_SRGB);
    image->x1 = size[0].w, image->y1 = size[0].h;
    for (size_t i = 0; i < picture_.rgb.size(); ++i)
      image->comps[i % 3].data[i / 3] = picture_.rgb[i];
    opj_cparameters_t parameters;
    opj_set_default_encoder_parameters(&parameters);
    parameters.tcp_numlayers = 1;
    parameters.cp_disto_alloc = 1;
    parameters.numresolution = 3;
    opj_codec_t* codec = opj_create_compress(OPJ_CODEC_JP2);
    opj_stream_t* stream = opj_stream_create_default_file_stream(path.c_str(), OPJ_FALSE);
    EXPECT_TRUE(opj_setup_encoder(codec, &parameters, image) &&
                opj_start_compress(codec, image, stream) && opj_encode(codec, stream) &&
                opj_end_compress(codec, stream));
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
    opj_image_destroy(image);
    return path;
  }

  fs::path store(const char* name, std::span<const unsigned char> bytes) const {
    EXPECT_TRUE(write_file(folder_ / name, std::as_bytes(bytes)));
    return folder_ / name;
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("hologram-image-" + std::to_string(getpid()));
  const Image picture_ = gradient(37, 21);
};

TEST_F(Formats, WithoutLossEveryPixelComesBack) {
  ASSERT_TRUE(write_png(folder_ / "a.png", picture_));
  for (const fs::path& path : {folder_ / "a.png", webp(), jpeg2000(), tiff(COMPRESSION_NONE),
                               tiff(COMPRESSION_LZW), tiff(COMPRESSION_PACKBITS)}) {
    const auto image = read_image(path);
    ASSERT_TRUE(image.has_value()) << image.error().to_string();
    EXPECT_EQ(image->width, picture_.width) << path;
    EXPECT_EQ(image->rgb, picture_.rgb) << path;
  }
}

TEST_F(Formats, JpegIsClose) {
  const Image image = read_image(jpeg()).value();
  ASSERT_EQ(image.rgb.size(), picture_.rgb.size());
  for (size_t i = 0; i < image.rgb.size(); ++i) EXPECT_NEAR(image.rgb[i], picture_.rgb[i], 8);
}

TEST_F(Formats, WhatIsCutShortNeverCrashes) {
  ASSERT_TRUE(write_png(folder_ / "a.png", picture_));
  for (const fs::path& path :
       {folder_ / "a.png", jpeg(), webp(), jpeg2000(), tiff(COMPRESSION_LZW)}) {
    const FileMap file = FileMap::open(path).value();
    for (size_t size = 0; size < file.size(); size += 7) {
      const auto image = decode(file.bytes().first(size));
      if (size < 40) {
        EXPECT_FALSE(image.has_value()) << path << " of " << size;
      }
    }
  }
}

TEST_F(Formats, OthersAreRefusedByName) {
  const auto text = decode(std::as_bytes(std::span("hello, world")));
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code(), ErrorCode::unsupported);
  EXPECT_THAT(text.error().to_string(), HasSubstr("PNG, JPEG, JPEG 2000, WebP or TIFF"));
}

}  // namespace
}  // namespace hologram::image
