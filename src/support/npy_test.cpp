// NumPy itself writes what is read here, and reads what is written here.
#include "support/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "support/file.h"

namespace hologram {
namespace {

namespace fs = std::filesystem;

class NpyTest : public testing::Test {
 protected:
  NpyTest() : folder_(fs::temp_directory_path() / fmt::format("hologram-npy-{}", getpid())) {
    fs::create_directories(folder_);
  }
  ~NpyTest() override { fs::remove_all(folder_); }
  int python(const std::string& code) {
    const std::string script = (folder_ / "script.py").string();
    EXPECT_TRUE(write_file(
        script, "import numpy as np, os\nos.chdir('" + folder_.string() + "')\n" + code));
    return std::system(("/usr/bin/python3 " + script).c_str());
  }
  fs::path folder_;
};

TEST_F(NpyTest, ReadsWhatNumpyWrites) {
  ASSERT_EQ(
      python("for t in "
             "['?','i1','<i2','<i4','<i8','u1','<u2','<u4','<u8','<f2','<f4','<f8','<c8','<c16']:\n"
             "    a = (np.arange(24) % 7).reshape(2, 3, 4).astype(t)\n"
             "    n = t.strip('<').replace('?', 'b1')\n"
             "    np.save(n + '.npy', a)\n"
             "    np.save(n + '-f.npy', np.asfortranarray(a))\n"
             "    np.save(n + '-big.npy', a.astype(a.dtype.newbyteorder('>')))\n"
             "np.save('empty.npy', np.zeros((0, 5), np.float32))\n"
             "np.save('scalar.npy', np.float32(3))\n"),
      0);
  for (const char* name :
       {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"}) {
    const NpyArray plain = read_npy(folder_ / fmt::format("{}.npy", name)).value();
    EXPECT_EQ(plain.shape, (std::vector<int64_t>{2, 3, 4})) << name;
    for (const char* variant : {"-f", "-big"}) {
      const NpyArray other = read_npy(folder_ / fmt::format("{}{}.npy", name, variant)).value();
      EXPECT_EQ(other.type, plain.type);
      EXPECT_EQ(other.data, plain.data) << name << variant;
    }
  }
  const NpyArray floats = read_npy(folder_ / "f4.npy").value();
  float value;
  std::memcpy(&value, floats.data.data() + 4 * 13, 4);
  EXPECT_EQ(value, 6.0f);
  EXPECT_EQ(read_npy(folder_ / "empty.npy")->shape, (std::vector<int64_t>{0, 5}));
  EXPECT_TRUE(read_npy(folder_ / "scalar.npy")->shape.empty());
}

TEST_F(NpyTest, NumpyReadsWhatIsWritten) {
  std::vector<float> values(10);
  for (int i = 0; i < 10; ++i) values[i] = static_cast<float>(i) / 4;
  NpyArray array{DType::f32, {2, 5}, {}};
  const auto bytes = std::as_bytes(std::span(values));
  array.data.assign(bytes.begin(), bytes.end());
  ASSERT_TRUE(write_npy(folder_ / "a.npy", array));
  ASSERT_TRUE(
      write_npy(folder_ / "b.npy", {DType::i8, {3}, std::vector<std::byte>(3, std::byte{0xff})}));
  ASSERT_TRUE(write_npy(folder_ / "s.npy", {DType::boolean, {}, {std::byte{1}}}));
  EXPECT_EQ(python("a = np.load('a.npy'); assert a.dtype == np.float32 and (a == "
                   "np.arange(10).reshape(2, 5) / 4).all()\n"
                   "b = np.load('b.npy'); assert b.dtype == np.int8 and b.shape == (3,) and (b == "
                   "-1).all()\n"
                   "s = np.load('s.npy'); assert s.shape == () and s == True\n"),
            0);
}

TEST_F(NpyTest, RefusesWhatIsDamaged) {
  const auto file =
      format_npy(DType::f32, std::vector<int64_t>{3}, std::vector<std::byte>(12)).value();
  ASSERT_TRUE(parse_npy(file));
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(parse_npy(std::span(file).first(size))) << "cut at " << size;
  for (size_t i = 0; i < file.size() - 12; ++i) {  // no crash whatever the byte; the rest is luck
    auto damaged = file;
    damaged[i] ^= std::byte{0x11};
    (void)parse_npy(damaged);
  }
  EXPECT_EQ(format_npy(DType::u4, {}, {}).error().code(), ErrorCode::unsupported);
}

}  // namespace
}  // namespace hologram
