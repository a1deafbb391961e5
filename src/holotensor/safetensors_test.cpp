#include "holotensor/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

namespace hologram::holotensor {
namespace {

std::vector<std::byte> file_of(std::string_view header, size_t data) {
  std::vector<std::byte> bytes(8 + header.size() + data);
  const uint64_t size = header.size();
  std::memcpy(bytes.data(), &size, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  for (size_t i = 0; i < data; ++i) bytes[8 + header.size() + i] = std::byte(i);
  return bytes;
}

Result<SafetensorsReader> open_bytes(std::vector<std::byte> bytes) {
  return SafetensorsReader::open(memory_source(SharedBytes::owned(std::move(bytes))));
}

TEST(Safetensors, ReadsTheExampleOfTheFormat) {
  const auto reader = open_bytes(file_of(
      R"({"__metadata__":{"format":"pt","x":"\u00e4"},"b":{"shape":[],"dtype":"BF16","data_offsets":[12,14]},"a":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}, "none":{"dtype":"F32","shape":[0,7],"data_offsets":[14,14]}}  )",
      14));
  ASSERT_TRUE(reader) << reader.error().to_string();
  ASSERT_EQ(reader->tensors().size(), 3u);
  EXPECT_EQ(reader->tensors()[0].name, "a");
  EXPECT_EQ(reader->tensors()[0].dtype, DType::f16);
  EXPECT_EQ(reader->tensors()[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(reader->tensors()[1].name, "b");
  EXPECT_EQ(reader->tensors()[1].shape, std::vector<int64_t>{});
  EXPECT_EQ(reader->read(reader->tensors()[1]).value(),
            (std::vector<std::byte>{std::byte{12}, std::byte{13}}));
  EXPECT_EQ(reader->read(reader->tensors()[2])->size(), 0u);
  EXPECT_EQ(reader->metadata().at("format"), "pt");
  EXPECT_EQ(reader->metadata().at("x"), "\u00e4");
}

TEST(Safetensors, RefusesHostileHeaders) {
  struct Case {
    const char* header;
    size_t data;
  };
  const Case cases[] = {
      {"", 0},
      {"[]", 0},
      {"{", 0},
      {"{}", 3},
      {"{}}", 0},
      {"{\"a\":3}", 0},
      {"{\"a\":{}}", 0},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 8},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},})", 8},
      {R"({"a":{"dtype":"Q8","shape":[2],"data_offsets":[0,8]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,16]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
       16},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
       12},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}})",
       20},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":{}}})", 8},
      {R"({"__metadata__":{"a":1}})", 0},
      {R"({"a":null})", 0},
      {"{\"\xff\":{}}", 0},
  };
  for (const auto& [header, data] : cases) {
    const auto reader = open_bytes(file_of(header, data));
    ASSERT_FALSE(reader) << header;
    EXPECT_TRUE(is_user_error(reader.error().code())) << header;
  }
  EXPECT_FALSE(open_bytes({}));
  EXPECT_FALSE(open_bytes(std::vector<std::byte>(7)));
  auto lying = file_of("{}", 0);
  for (const uint64_t size : {uint64_t{3}, kMaxSafetensorsHeader + 1, UINT64_MAX}) {
    std::memcpy(lying.data(), &size, 8);
    EXPECT_FALSE(open_bytes(lying)) << size;
  }
  // Nesting that would overflow a recursive parser.
  EXPECT_FALSE(open_bytes(file_of("{\"a\":" + std::string(1000000, '['), 0)));
}

TEST(Safetensors, EveryByteFlippedIsAnErrorOrAFile) {
  const auto good = file_of(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})",
      11);
  ASSERT_TRUE(open_bytes(good));
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = good;
      damaged[i] ^= std::byte(1 << bit);
      const auto reader = open_bytes(damaged);
      if (!reader) continue;
      for (const auto& entry : reader->tensors()) EXPECT_TRUE(reader->read(entry));
    }
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(open_bytes({good.begin(), good.begin() + ptrdiff_t(size)})) << size;
  }
}

TEST(Safetensors, WritesWhatItReads) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("safetensors_test_" + std::to_string(::getpid()) + ".safetensors");
  const std::vector<SafetensorsEntry> entries = {{"quote\"back\\slash\n", DType::f32, {2, 2}},
                                                 {"\u03c0", DType::bf16, {3}},
                                                 {"flag", DType::boolean, {}},
                                                 {"fp8", DType::f8e4m3fn, {5}},
                                                 {"empty", DType::i64, {0, 9}}};
  std::vector<std::byte> data(16 + 6 + 1 + 5);
  for (size_t i = 0; i < data.size(); ++i) data[i] = std::byte(i * 7);
  {
    auto writer = SafetensorsWriter::create(path, entries, {{"made\tby", "a \"test\""}});
    ASSERT_TRUE(writer) << writer.error().to_string();
    ASSERT_TRUE(writer->write(std::span(data).first(10)));
    EXPECT_FALSE(writer->finish()) << "bytes are missing";
    ASSERT_TRUE(writer->write(std::span(data).subspan(10)));
    EXPECT_FALSE(writer->write(std::span(data).first(1))) << "one too many";
    EXPECT_FALSE(std::filesystem::exists(path)) << "not there before it is whole";
    ASSERT_TRUE(writer->finish());
  }
  const auto reader = SafetensorsReader::open(path);
  ASSERT_TRUE(reader) << reader.error().to_string();
  ASSERT_EQ(reader->tensors().size(), entries.size());
  EXPECT_EQ(reader->tensors()[0].offset % 8, 0u);
  std::vector<std::byte> back;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& entry = reader->tensors()[i];
    EXPECT_EQ(entry.name, entries[i].name);
    EXPECT_EQ(entry.dtype, entries[i].dtype);
    EXPECT_EQ(entry.shape, entries[i].shape);
    const auto bytes = reader->read(entry).value();
    back.insert(back.end(), bytes.begin(), bytes.end());
  }
  EXPECT_EQ(back, data);
  EXPECT_EQ(reader->metadata().at("made\tby"), "a \"test\"");
  std::filesystem::remove(path);

  EXPECT_EQ(SafetensorsWriter::create(path, {{"a", DType::i4, {2}}}).error().code(),
            ErrorCode::unsupported);
  EXPECT_EQ(SafetensorsWriter::create(path, {{"a", DType::f32, {2}}, {"a", DType::f32, {2}}})
                .error()
                .code(),
            ErrorCode::already_exists);
}

}  // namespace
}  // namespace hologram::holotensor
