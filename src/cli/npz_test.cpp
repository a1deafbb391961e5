// NumPy writes what is read here and reads what is written here.
#include "cli/npz.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "support/file.h"

namespace hologram::cli {
namespace {

namespace fs = std::filesystem;

TEST(Npz, TalksWithNumpyBothWays) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("hologram-npz-{}", getpid());
  fs::create_directories(folder);
  const auto python = [&](const std::string& code) {
    EXPECT_TRUE(write_file(folder / "s.py",
                           "import numpy as np, os\nos.chdir('" + folder.string() + "')\n" + code));
    return std::system(("/usr/bin/python3 " + (folder / "s.py").string()).c_str());
  };
  ASSERT_EQ(
      python(
          "x = np.arange(6, dtype=np.float32).reshape(2, 3)\n"
          "np.savez('a.npz', x=x, mask=np.ones(5, np.int64))\nnp.savez_compressed('b.npz', x=x)\n"),
      0);
  const auto plain = read_npz(folder / "a.npz").value();
  EXPECT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain.at("x").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(plain.at("mask").type, DType::i64);
  EXPECT_EQ(read_npz(folder / "b.npz")->at("x").data, plain.at("x").data);
  ASSERT_TRUE(write_npz(folder / "c.npz", plain));
  EXPECT_EQ(python("c = np.load('c.npz')\nassert (c['x'] == np.arange(6).reshape(2, 3)).all()\n"
                   "assert c['mask'].sum() == 5\n"),
            0);

  const std::string whole = read_text_file(folder / "a.npz").value();
  for (size_t cut : {size_t{0}, size_t{10}, whole.size() / 2}) {
    ASSERT_TRUE(write_file(folder / "cut.npz", std::string_view(whole).substr(0, cut)));
    EXPECT_FALSE(read_npz(folder / "cut.npz")) << cut;
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace hologram::cli
