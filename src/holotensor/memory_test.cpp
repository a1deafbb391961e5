// How much memory encoding, decoding and loading take: the peak of a process of its own, whose
// whole life is that one thing.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "holotensor/model/model_codec.h"
#include "holotensor/reader.h"
#include "holotensor/safetensors.h"
#include "holotensor/source/http_source.h"
#include "holotensor/source/loader.h"
#include "holotensor/source/test_http_server.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_SANITIZERS() GTEST_SKIP() << "sanitizers need memory of their own"
#else
#define SKIP_UNDER_SANITIZERS()
#endif

namespace hologram::holotensor {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kAllowed = 64 * kMiB;  // besides the encoded blocks of one tensor
constexpr int64_t kWeights = 32 << 20;    // of a tensor: 64 MiB as bf16

// Sums of four uniform numbers are close enough to normal ones, and fast.
void write_model(const std::filesystem::path& path, int tensors) {
  std::vector<SafetensorsEntry> entries;
  for (int i = 0; i < tensors; ++i)
    entries.push_back({"w" + std::to_string(i), DType::bf16, {kWeights / 1024, 1024}});
  auto writer = *SafetensorsWriter::create(path, entries);
  std::vector<uint16_t> piece(1 << 19);
  uint64_t state = 1;
  for (int64_t done = 0; done < tensors * kWeights; done += static_cast<int64_t>(piece.size())) {
    for (uint16_t& weight : piece) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const uint64_t bits = state ^ state >> 29;
      const auto sum = static_cast<float>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                          (bits >> 32 & 0xffff) + (bits >> 48)) -
                       131070.0f;
      weight = f32_to_bf16(sum * 1e-6f);
    }
    ASSERT_TRUE(writer.write(std::as_bytes(std::span(piece))));
  }
  ASSERT_TRUE(writer.finish());
}

constexpr char kAction[] = "HOLOTENSOR_TEST_ACTION", kFolder[] = "HOLOTENSOR_TEST_FOLDER",
               kUrl[] = "HOLOTENSOR_TEST_URL";

// Runs MemoryChild alone in a process, and returns the peak of what was in its memory.
uint64_t peak_of(const std::string& action, const std::filesystem::path& folder,
                 const std::string& url) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv(kAction, action.c_str(), 1);
    ::setenv(kFolder, folder.c_str(), 1);
    ::setenv(kUrl, url.c_str(), 1);
    ::execl("/proc/self/exe", "holotensor_test", "--gtest_filter=MemoryChild.*", "--gtest_brief=1",
            nullptr);
    ::_exit(127);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << action << ": " << status;
  std::ifstream in(folder / "peak");
  uint64_t kib = 0;
  in >> kib;
  std::filesystem::remove(folder / "peak");
  EXPECT_GT(kib, 0u);
  return kib * 1024;
}

// One tensor of a remote file.
Status load_remote(const std::string& url) {
  HOLOGRAM_TRY(auto http, HttpByteSource::create({{url, 0}}));
  HOLOGRAM_TRY(auto source, remote_fragments(std::move(http)));
  HOLOGRAM_TRY(const auto loader, Loader::start(std::move(source), {.tensors = {"w1"}}));
  HOLOGRAM_CHECK(loader->wait());
  HOLOGRAM_TRY(const Quality quality, loader->quality("w1"));
  if (!quality.exact) return fail(ErrorCode::internal, "not every bit was loaded");
  return {};
}

Status act(std::string_view action, const std::filesystem::path& folder) {
  EncodeModelOptions any;
  any.encoder.distribution = Distribution::any;
  const auto status_of = [](const auto& result) -> Status {
    return result ? Status() : Status(std::unexpected(result.error()));
  };
  const auto model = folder / "model.safetensors", back = folder / "back.safetensors";
  if (action == "encode") return status_of(encode_model(model, folder / "model.ht"));
  if (action == "encode_any") return status_of(encode_model(model, folder / "any.ht", any));
  if (action == "decode") return status_of(decode_model(folder / "model.ht", back));
  if (action == "decode_any") return status_of(decode_model(folder / "any.ht", back));
  return load_remote(std::getenv(kUrl));
}

// The life of the other process. Without an action, in the run of all tests, there is nothing to
// do.
TEST(MemoryChild, Acts) {
  const char* action = std::getenv(kAction);
  if (!action) return;
  const std::filesystem::path folder = std::getenv(kFolder);
  const Status status = act(action, folder);
  ASSERT_TRUE(status) << status.error().to_string();
  std::ifstream usage("/proc/self/status");
  std::string word;
  while (usage >> word && word != "VmHWM:") {
  }
  usage >> word;
  std::ofstream(folder / "peak") << word;
}

std::vector<std::byte> contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

TEST(MemoryTest, StaysBelow64MiBAndTheBlocksOfOneTensor) {
  SKIP_UNDER_SANITIZERS();
  const auto folder = std::filesystem::path(testing::TempDir()) / "hologram_memory";
  std::filesystem::create_directories(folder);
  write_model(folder / "model.safetensors", 2);
  const auto check = [&](const std::string& action, const std::filesystem::path& file,
                         const std::string& url = {}) {
    const uint64_t peak = peak_of(action, folder, url);
    const auto reader = Reader::open(file);
    ASSERT_TRUE(reader) << reader.error().to_string();
    uint64_t blocks = 0;
    for (const TensorInfo& info : reader->tensors()) blocks = std::max(blocks, info.stored_bytes());
    EXPECT_LT(peak, kAllowed + blocks)
        << action << ": " << peak / kMiB << " MiB, of which " << blocks / kMiB << " MiB are blocks";
    std::printf("%-12s %4llu MiB; the blocks of a tensor: %llu MiB\n", action.c_str(),
                static_cast<unsigned long long>(peak / kMiB),
                static_cast<unsigned long long>(blocks / kMiB));
  };
  check("encode", folder / "model.ht");
  check("decode", folder / "model.ht");
  EXPECT_EQ(contents(folder / "back.safetensors"), contents(folder / "model.safetensors"));
  check("encode_any", folder / "any.ht");
  check("decode_any", folder / "any.ht");
  EXPECT_EQ(contents(folder / "back.safetensors"), contents(folder / "model.safetensors"));
  const TestHttpServer server(contents(folder / "model.ht"), TestHttpServer::Mode::good);
  check("load", folder / "model.ht", server.url());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hologram::holotensor
