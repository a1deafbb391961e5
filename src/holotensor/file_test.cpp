// Files: writer, reader, fragments, and reading no more than a quality needs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "holotensor/reader.h"
#include "holotensor/test_tensors.h"
#include "holotensor/writer.h"

namespace hologram::holotensor {
namespace {

using test::TestTensor;

class File : public testing::Test {
 protected:
  File() {
    std::string folder = (std::filesystem::temp_directory_path() / "holotensor-XXXXXX").string();
    folder_ = ::mkdtemp(folder.data());
  }
  ~File() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TestTensor named(std::string name, TestTensor tensor) {
  tensor.name = std::move(name);
  return tensor;
}

std::vector<TestTensor> some_tensors() {
  return {named("layer.0.weight", test::gaussian(DType::bf16, {256, 300})),
          named("layer.0.bias", test::gaussian(DType::f32, {300})),
          named("", test::gaussian(DType::f16, {3, 5, 7, 11})),
          named("ids", test::random_bits(DType::i64, {17})),
          named("empty", TestTensor{.dtype = DType::f32, .shape = {0, 4}}),
          named("scalar", test::gaussian(DType::f32, {}))};
}

uint64_t write(const std::filesystem::path& path, const std::vector<TestTensor>& tensors,
               const EncoderOptions& options = {}) {
  auto writer = Writer::create(path);
  EXPECT_TRUE(writer) << writer.error().to_string();
  for (const TestTensor& tensor : tensors) {
    auto encoded = Encoder(options).encode(tensor.view());
    EXPECT_TRUE(encoded) << encoded.error().to_string();
    const auto added = writer->add(*std::move(encoded));
    EXPECT_TRUE(added) << added.error().to_string();
  }
  const auto size = writer->finish();
  EXPECT_TRUE(size) << size.error().to_string();
  return size.value_or(0);
}

TEST_F(File, AWholeModelComesBack) {
  const auto tensors = some_tensors();
  const auto path = folder_ / "model.ht";
  const uint64_t size = write(path, tensors);
  EXPECT_EQ(size, std::filesystem::file_size(path));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "left-overs";
  const auto reader = Reader::open(path);
  ASSERT_TRUE(reader) << reader.error().to_string();
  ASSERT_EQ(reader->tensors().size(), tensors.size());
  // Every byte is accounted for.
  uint64_t stored = reader->overhead();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& info = reader->tensors()[i];
    EXPECT_EQ(info.name, tensors[i].name);
    EXPECT_EQ(info.dtype, tensors[i].dtype);
    EXPECT_EQ(info.shape, tensors[i].shape);
    EXPECT_EQ(info.source_bytes(), tensors[i].bytes.size());
    stored += info.stored_bytes();
    const auto decoder = reader->decode_to_quality(info, QualityTarget::lossless());
    ASSERT_TRUE(decoder) << decoder.error().to_string();
    EXPECT_EQ(*decoder->reconstruct(), tensors[i].bytes);
  }
  EXPECT_EQ(stored, size);
  EXPECT_EQ(size, reader->file_size());
}

TEST_F(File, TheSameBytesInMemoryAndInsideAnArchive) {
  std::vector<EncodedTensor> encoded;
  for (const TestTensor& tensor : some_tensors())
    encoded.push_back(*Encoder().encode(tensor.view()));
  const auto bytes = write_to_memory(encoded);
  ASSERT_TRUE(bytes);
  const auto path = folder_ / "model.ht";
  write(path, some_tensors());
  std::ifstream file(path, std::ios::binary);
  const std::string on_disk((std::istreambuf_iterator<char>(file)), {});
  ASSERT_EQ(on_disk.size(), bytes->size());
  EXPECT_EQ(std::memcmp(on_disk.data(), bytes->data(), on_disk.size()), 0);

  std::vector<std::byte> archive(1000, std::byte{0xee});
  archive.insert(archive.end(), bytes->begin(), bytes->end());
  archive.resize(archive.size() + 77);
  const auto reader = Reader::open(memory_source(SharedBytes::borrowed(archive)), 1000);
  ASSERT_TRUE(reader) << reader.error().to_string();
  const auto decoder = reader->decode_to_quality(**reader->find("ids"), QualityTarget::lossless());
  ASSERT_TRUE(decoder) << decoder.error().to_string();
  EXPECT_EQ(*decoder->reconstruct(), some_tensors()[3].bytes);
}

TEST_F(File, ReadsNoMoreThanAQualityNeeds) {
  const auto tensor = named("w", test::gaussian(DType::bf16, {512, 512}));
  const auto path = folder_ / "one.ht";
  write(path, {tensor}, {.fragments = 16});
  uint64_t before = 0;
  for (const double decibels : {5.0, 15.0, 30.0, 45.0}) {
    const auto decoded = decode_to_quality(path, QualityTarget::snr_db(decibels), {}, DType::f32);
    ASSERT_TRUE(decoded) << decoded.error().to_string();
    EXPECT_GE(decoded->quality.snr_db(), decibels);
    EXPECT_GT(decoded->bytes_read, before);
    before = decoded->bytes_read;
    const auto nmse = test::nmse(tensor.values(), test::as_floats(decoded->bytes));
    EXPECT_NEAR(static_cast<double>(nmse), decoded->quality.nmse, 1e-5 * decoded->quality.nmse);
  }
  const auto exact = decode_to_quality(path, QualityTarget::lossless());
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->bytes, tensor.bytes);
}

TEST_F(File, EveryTensorOneAfterAnother) {
  const auto tensors = some_tensors();
  write(folder_ / "model.ht", tensors);
  size_t seen = 0;
  const auto status = decode_each_to_quality(folder_ / "model.ht", QualityTarget::lossless(),
                                             [&](DecodedTensor decoded) -> Status {
                                               EXPECT_EQ(decoded.bytes, tensors[seen].bytes);
                                               ++seen;
                                               return {};
                                             });
  ASSERT_TRUE(status) << status.error().to_string();
  EXPECT_EQ(seen, tensors.size());
}

TEST_F(File, NamesAreFoundOrExplained) {
  write(folder_ / "model.ht", some_tensors());
  const auto reader = Reader::open(folder_ / "model.ht");
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader->find("scalar"))->name, "scalar");
  const auto wrong = reader->find("layer.0.wieght");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message().find("layer.0.weight"), std::string::npos);
  EXPECT_EQ(decode_to_quality(folder_ / "model.ht", QualityTarget::lossless()).error().code(),
            ErrorCode::invalid_argument);
  EXPECT_EQ(Reader::open(folder_ / "missing.ht").error().code(), ErrorCode::not_found);
  EXPECT_FALSE(Reader::open(folder_));
}

TEST_F(File, TwoTensorsOfOneNameAreRefused) {
  auto writer = Writer::create(folder_ / "two.ht");
  const auto encoded = *Encoder().encode(test::gaussian(DType::f32, {8}).view());
  ASSERT_TRUE(writer->add(encoded));
  EXPECT_EQ(writer->add(encoded).error().code(), ErrorCode::already_exists);
  ASSERT_TRUE(writer->finish());
  EXPECT_FALSE(writer->finish());
  EXPECT_FALSE(writer->add(encoded));
}

TEST_F(File, EqualTensorsShareTheirFragments) {
  const auto tensor = test::gaussian(DType::bf16, {200, 300});
  const uint64_t once = write(folder_ / "one.ht", {named("a", tensor)});
  const uint64_t thrice =
      write(folder_ / "three.ht", {named("a", tensor), named("b", tensor), named("c", tensor)});
  EXPECT_LT(thrice, once + 400);
  const auto reader = Reader::open(folder_ / "three.ht");
  ASSERT_TRUE(reader) << reader.error().to_string();
  for (const TensorInfo& info : reader->tensors()) {
    const auto decoder = reader->decode_to_quality(info, QualityTarget::lossless());
    ASSERT_TRUE(decoder) << decoder.error().to_string();
    EXPECT_EQ(*decoder->reconstruct(), tensor.bytes);
  }
}

TEST_F(File, WithoutFinishNothingIsLeft) {
  {
    auto writer = Writer::create(folder_ / "gone.ht");
    ASSERT_TRUE(writer->add(*Encoder().encode(test::gaussian(DType::f32, {1000}).view())));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_FALSE(Writer::create(folder_ / "no" / "such" / "folder.ht"));
}

TEST_F(File, AFileCutOffHoldsEveryTensorAtSomeQuality) {
  std::vector<TestTensor> tensors;
  for (int i = 0; i < 3; ++i)
    tensors.push_back(named(std::to_string(i), test::gaussian(DType::bf16, {256, 512}, 0.02, i)));
  // Zeros are as good without a fragment, and still need one to be there.
  tensors.push_back(named("zeros", test::from_values(DType::f32, {64}, std::vector<float>(64))));
  const auto path = folder_ / "cut.ht";
  const uint64_t size = write(path, tensors);
  std::filesystem::resize_file(path, size * 6 / 10);
  const auto reader = Reader::open(path);
  ASSERT_TRUE(reader) << reader.error().to_string();
  for (const TensorInfo& info : reader->tensors()) {
    EXPECT_EQ(reader->decode_to_quality(info, QualityTarget::lossless()).has_value(),
              info.name == "zeros");
    const auto decoder = reader->decode_to_quality(info, QualityTarget::snr_db(20));
    ASSERT_TRUE(decoder) << decoder.error().to_string();
  }
}

// A number of kB from /proc/self/status.
long status_kb(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (long value; word == key + ":" && status >> value) return value;
  return -1;
}

TEST_F(File, WritingAndReadingHoldOneTensorInMemory) {
#if defined(HOLOGRAM_SANITIZED)
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
  const auto path = folder_ / "large.ht";
  const TestTensor tensor = test::gaussian(DType::bf16, {1024, 2048});  // 4 MiB
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak starts again from here
  const long before = status_kb("VmRSS");
  {
    auto writer = Writer::create(path);
    for (int i = 0; i < 60; ++i) {  // 240 MiB in all
      TestTensor next = named(std::to_string(i), tensor);
      ASSERT_TRUE(writer->add(*Encoder().encode(next.view())));
    }
    ASSERT_TRUE(writer->finish());
  }
  const auto status =
      decode_each_to_quality(path, QualityTarget::lossless(), [&](DecodedTensor decoded) -> Status {
        EXPECT_EQ(decoded.bytes, tensor.bytes);
        return {};
      });
  ASSERT_TRUE(status) << status.error().to_string();
  EXPECT_LT(status_kb("VmHWM") - before, 64 << 10);
}

}  // namespace
}  // namespace hologram::holotensor
