#include "support/file.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <xxhash.h>

#include <filesystem>

#include "support/aligned.h"
#include "support/hash.h"

namespace hologram {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() : folder_(fs::temp_directory_path() / fmt::format("hologram-file-{}", getpid())) {
    fs::create_directories(folder_);
  }
  ~FileTest() override { fs::remove_all(folder_); }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  fs::path folder_;
};

TEST_F(FileTest, WritesReadsAndMaps) {
  const fs::path path = folder_ / "x";
  ASSERT_TRUE(write_file(path, std::string_view("hello")));
  EXPECT_EQ(read_text_file(path).value(), "hello");
  EXPECT_EQ(read_file(path)->size(), 5u);
  FileMap map = FileMap::open(path).value();
  EXPECT_EQ(map.size(), 5u);
  EXPECT_EQ(static_cast<char>(map.bytes()[4]), 'o');
  FileMap moved = std::move(map);
  EXPECT_EQ(moved.size(), 5u);
  ASSERT_TRUE(write_file(path, std::string_view("")));
  EXPECT_EQ(FileMap::open(path)->size(), 0u);
  EXPECT_EQ(files(), 1u) << "no temporary file is left";
}

TEST_F(FileTest, ReadsPartsAndMapsLater) {
  const fs::path path = folder_ / "x";
  ASSERT_TRUE(write_file(path, std::string_view("hello")));
  OpenFile opened = OpenFile::open(path).value();
  const OpenFile file = std::move(opened);
  EXPECT_FALSE(opened.is_open());
  EXPECT_TRUE(file.is_open());
  EXPECT_EQ(file.size(), 5u);
  char part[3];
  ASSERT_TRUE(file.read(2, std::as_writable_bytes(std::span(part))));
  EXPECT_EQ(std::string_view(part, 3), "llo");
  EXPECT_EQ(file.read(3, std::as_writable_bytes(std::span(part))).error().code(),
            ErrorCode::io_error);
  // Another file of the same name is another file.
  ASSERT_TRUE(write_file(path, std::string_view("")));
  EXPECT_EQ(static_cast<char>(file.map()->bytes()[4]), 'o');
  EXPECT_EQ(OpenFile::open(path)->map()->size(), 0u);
  // The same file with another size is not what was opened.
  ASSERT_TRUE(write_file(path, std::string_view("hello")));
  const OpenFile shortened = OpenFile::open(path).value();
  fs::resize_file(path, 3);
  EXPECT_EQ(shortened.map().error().code(), ErrorCode::io_error);
}

TEST_F(FileTest, UncommittedWritesLeaveNothing) {
  ASSERT_TRUE(write_file(folder_ / "x", std::string_view("old")));
  {
    FileWriter writer = FileWriter::create(folder_ / "x").value();
    ASSERT_TRUE(writer.write(std::as_bytes(std::span("new"))));
    EXPECT_EQ(read_text_file(folder_ / "x").value(), "old");
  }
  EXPECT_EQ(read_text_file(folder_ / "x").value(), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, HeadersCanBeWrittenLast) {
  FileWriter writer = FileWriter::create(folder_ / "y").value();
  ASSERT_TRUE(writer.write(std::as_bytes(std::span("____body", 8))));
  ASSERT_TRUE(writer.write_at(0, std::as_bytes(std::span("HEAD", 4))));
  ASSERT_TRUE(writer.commit());
  EXPECT_EQ(writer.commit().error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(read_text_file(folder_ / "y").value(), "HEADbody");
}

TEST_F(FileTest, FailuresSayWhichFileAndWhy) {
  const Error missing = FileMap::open(folder_ / "none").error();
  EXPECT_EQ(missing.code(), ErrorCode::not_found);
  EXPECT_NE(missing.message().find("none'"), std::string::npos);
  EXPECT_EQ(read_file(folder_).error().code(), ErrorCode::io_error);
  EXPECT_EQ(FileMap::open(folder_).error().code(), ErrorCode::io_error);
  if (const auto folder = OpenFile::open(folder_)) {  // some systems tell where a folder ends
    std::byte byte;
    EXPECT_EQ(folder->read(0, std::span(&byte, 1)).error().code(), ErrorCode::io_error);
  }
  EXPECT_EQ(write_file(folder_ / "no" / "file", std::string_view("x")).error().code(),
            ErrorCode::not_found);
}

TEST(AlignedBytes, AlignsAndRefusesTheImpossible) {
  for (size_t size : {1u, 63u, 64u, 65u, 5000000u}) {
    const AlignedBytes memory = AlignedBytes::allocate(size).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % kAlignment, 0u);
    EXPECT_EQ(memory.size(), size);
    memory.bytes()[size - 1] = std::byte{1};
  }
  EXPECT_EQ(AlignedBytes::allocate(0)->size(), 0u);
  EXPECT_EQ(AlignedBytes::allocate(SIZE_MAX).error().code(), ErrorCode::resource_exhausted);
}

TEST(Hash, MatchesThePublishedValues) {
  // XXH3 of no bytes, from its specification.
  EXPECT_EQ(hash64(std::string_view("")), 0x2D06800538D394C2u);
  EXPECT_EQ(hash128({}).low, 0x6001C324468D497Fu);
  EXPECT_EQ(hash128({}).high, 0x99AA06D3014798D8u);
  EXPECT_NE(hash64("a"), hash64("b"));
  EXPECT_NE(hash64("a", 1), hash64("a", 2));
}

// Whichever vectors it is computed by.
TEST(Hash, IsTheLibrarysForEveryLength) {
  std::vector<std::byte> bytes((1 << 20) + 1);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 167 >> 3);
  for (size_t size : {0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 1025, 13000, 262143,
                      262144, 262145, 1 << 20}) {
    const Hash128 hash = hash128(std::span(bytes).subspan(1, size));
    const XXH128_hash_t expected = XXH3_128bits(bytes.data() + 1, size);
    EXPECT_EQ(hash.low, expected.low64) << size;
    EXPECT_EQ(hash.high, expected.high64) << size;
  }
}

}  // namespace
}  // namespace hologram
