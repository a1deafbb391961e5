#include "holotensor/source/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "holotensor/classical/seeded_random.h"
#include "holotensor/source/http_source.h"
#include "holotensor/source/test_http_server.h"
#include "holotensor/writer.h"
#include "support/file.h"

namespace hologram::holotensor {
namespace {

using Mode = TestHttpServer::Mode;
using std::chrono::milliseconds;

// Tensors whose every subset of fragments decodes, and one that is all or nothing.
class LoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("loader_test_" + std::to_string(::getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    add("attention.q", {64, 64}, SchemeId::spectral);
    add("attention.k", {80, 48}, SchemeId::projection);
    add("mlp.up", {96, 128}, SchemeId::lowrank);
    add("bias", {77}, SchemeId::packed);
    file_ = folder_ / "model.ht";
    auto writer = Writer::create(file_);
    for (const auto& tensor : encoded_) ASSERT_TRUE(writer->add(tensor));
    ASSERT_TRUE(writer->finish());
    bytes_ = *read_file(file_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void add(std::string name, std::vector<int64_t> shape, SchemeId scheme) {
    SeededRandom random(names_.size());
    std::vector<float> values(shape[0] * (shape.size() > 1 ? shape[1] : 1));
    for (float& value : values) value = static_cast<float>(random.normal());
    const auto bytes = std::as_bytes(std::span(values));
    auto encoded =
        Encoder({.scheme = scheme, .fragments = 6}).encode({name, DType::f32, shape, bytes});
    ASSERT_TRUE(encoded) << encoded.error().to_string();
    encoded_.push_back(*std::move(encoded));
    sources_.emplace_back(bytes.begin(), bytes.end());
    names_.push_back(std::move(name));
  }

  // Everything came, to the bit.
  void expect_exact(std::unique_ptr<FragmentSource> source) {
    auto loader = Loader::start(std::move(source));
    ASSERT_TRUE(loader) << loader.error().to_string();
    const Status status = (*loader)->wait();
    ASSERT_TRUE(status) << status.error().to_string();
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto loaded = (*loader)->get(names_[i]);
      ASSERT_TRUE(loaded) << loaded.error().to_string();
      EXPECT_TRUE(loaded->quality.exact);
      EXPECT_EQ(loaded->bytes, sources_[i]) << names_[i];
    }
    const LoadProgress progress = (*loader)->progress();
    EXPECT_TRUE(progress.finished);
    EXPECT_EQ(progress.tensors_done, names_.size());
    EXPECT_EQ(progress.fragments_loaded, progress.fragments_wanted);
    EXPECT_EQ(progress.bytes_loaded, progress.bytes_wanted);
  }

  static HttpOptions quick() {
    return {.attempts = 3,
            .connect_timeout = milliseconds(1000),
            .stall_timeout = milliseconds(150),
            .request_timeout = milliseconds(3000),
            .retry_delay = milliseconds(5),
            .mirror_cool_off = milliseconds(300)};
  }
  static Result<std::unique_ptr<FragmentSource>> http(std::vector<Mirror> mirrors) {
    return remote_fragments(*HttpByteSource::create(std::move(mirrors), quick()));
  }

  std::filesystem::path folder_, file_;
  std::vector<EncodedTensor> encoded_;
  std::vector<std::vector<std::byte>> sources_;
  std::vector<std::string> names_;
  std::vector<std::byte> bytes_;
};

TEST_F(LoaderTest, EverySourceGivesEveryBit) {
  expect_exact(memory_fragments(encoded_));
  expect_exact(*file_fragments(file_));
  expect_exact(*remote_fragments(memory_byte_source(bytes_)));
  expect_exact(*remote_fragments(*file_byte_source(file_)));
  ASSERT_TRUE(split_to_folder(file_, folder_ / "parts"));
  expect_exact(*folder_fragments(folder_ / "parts"));
  TestHttpServer server(bytes_, Mode::good);
  expect_exact(*http({{server.url()}}));
}

TEST_F(LoaderTest, LoadsNoMoreThanAQualityNeeds) {
  const auto target = QualityTarget::nmse(0.55);
  auto loader = *Loader::start(*file_fragments(file_), {.target = target});
  ASSERT_TRUE(loader->wait());
  size_t expected = 0;
  for (const auto& tensor : encoded_) {
    expected += fragments_for(tensor.info.curve, target);
    EXPECT_LE(loader->quality(tensor.info.name)->nmse, 0.55);
  }
  EXPECT_EQ(loader->progress().fragments_loaded, expected);
  EXPECT_LT(loader->progress().bytes_loaded, bytes_.size());
}

TEST_F(LoaderTest, LoadsOnlyTheTensorsAskedFor) {
  auto loader = *Loader::start(*file_fragments(file_), {.tensors = {"mlp.up"}});
  ASSERT_TRUE(loader->wait());
  EXPECT_TRUE(loader->get("mlp.up"));
  EXPECT_EQ(loader->get("bias").error().code(), ErrorCode::not_found);
  EXPECT_EQ(Loader::start(*file_fragments(file_), {.tensors = {"nothing"}}).error().code(),
            ErrorCode::not_found);
}

TEST_F(LoaderTest, ATargetThatTheFileCannotReachIsAnError) {
  std::vector<EncodedTensor> lossy;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8.5f};
  const int64_t shape[] = {8};
  lossy.push_back(*Encoder({.scheme = SchemeId::spectral, .target = QualityTarget::snr_db(20)})
                       .encode({"w", DType::f32, shape, std::as_bytes(std::span(values))}));
  auto loader = *Loader::start(memory_fragments(lossy), {.target = QualityTarget::lossless()});
  EXPECT_EQ(loader->wait().error().code(), ErrorCode::unsupported);
  EXPECT_TRUE(loader->get("w")) << "what there is can be used";
}

TEST_F(LoaderTest, DamagedAndMissingFilesOfAFolderAreReplacedByOthers) {
  const auto parts = folder_ / "parts";
  ASSERT_TRUE(split_to_folder(file_, parts));
  size_t broken = 0;
  for (const auto& file : std::filesystem::directory_iterator(parts)) {
    const std::string name = file.path().filename().string();
    if (name.ends_with("-0001.htf")) {
      std::filesystem::remove(file.path());
      ++broken;
    } else if (name.ends_with("-0002.htf")) {
      auto bytes = *read_file(file.path());
      bytes[bytes.size() / 2] ^= std::byte{4};
      ASSERT_TRUE(write_file(file.path(), bytes));
      ++broken;
    } else if (name.ends_with("-0003.htf")) {
      std::filesystem::resize_file(file.path(), 10);
      ++broken;
    }
  }
  ASSERT_EQ(broken, 9u);
  const auto target = QualityTarget::nmse(0.7);
  auto loader = *Loader::start(*folder_fragments(parts), {.target = target});
  const Status status = loader->wait();
  // Three good fragments of six are left: enough for the spectral and the projected tensor.
  for (const char* name : {"attention.q", "attention.k"}) {
    EXPECT_LE(loader->quality(name)->nmse, 0.7) << name;
    EXPECT_TRUE(loader->get(name));
  }
  EXPECT_EQ(loader->get("bias")->bytes, sources_[3]);
  EXPECT_GT(
      loader->statistics("attention.q")->corrupted + loader->statistics("attention.q")->missing,
      0u);
  auto all = *Loader::start(*folder_fragments(parts));
  const Status refused = all->wait();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::corrupt);
  EXPECT_FALSE(all->quality("attention.q")->exact);
}

// The default scheme: `ordered` needs its first fragments, `any` makes do with others.
TEST_F(LoaderTest, RefinedTensorsLoadInOrderOrFromAnyFragments) {
  std::vector<float> values(256 * 256);
  SeededRandom random(3);
  for (float& value : values) value = static_cast<float>(random.normal());
  const int64_t shape[] = {256, 256};
  const auto bytes = std::as_bytes(std::span(values));
  auto writer = Writer::create(folder_ / "refined.ht");
  for (const auto distribution : {Distribution::ordered, Distribution::any}) {
    const std::string name = distribution == Distribution::any ? "any" : "ordered";
    auto encoded = Encoder({.distribution = distribution}).encode({name, DType::f32, shape, bytes});
    ASSERT_TRUE(encoded) << encoded.error().to_string();
    ASSERT_GE(encoded->info.fragment_count, 4);
    ASSERT_TRUE(writer->add(*std::move(encoded)));
  }
  ASSERT_TRUE(writer->finish());
  const auto parts = folder_ / "refined";
  ASSERT_TRUE(split_to_folder(folder_ / "refined.ht", parts));
  {
    auto loader = *Loader::start(*folder_fragments(parts));
    ASSERT_TRUE(loader->wait());
    for (const char* name : {"ordered", "any"}) {
      EXPECT_TRUE(std::ranges::equal(loader->get(name)->bytes, bytes)) << name;
    }
  }
  for (const auto& file : std::filesystem::directory_iterator(parts)) {
    if (file.path().string().ends_with("-0001.htf")) std::filesystem::remove(file.path());
  }
  // Without fragment 1: `any` takes another instead, `ordered` stays at fragment 0.
  auto loader = *Loader::start(*folder_fragments(parts), {.target = QualityTarget::snr_db(40)});
  const Status status = loader->wait();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message().find("'ordered'"), std::string::npos)
      << status.error().to_string();
  EXPECT_GE(loader->quality("any")->snr_db(), 40);
  EXPECT_LT(loader->quality("ordered")->snr_db(), 40);
  EXPECT_TRUE(loader->get("ordered")) << "what there is can be used";
}

TEST_F(LoaderTest, BadMirrorsInFrontOfAGoodOneChangeNothing) {
  for (const Mode mode :
       {Mode::stall, Mode::silent, Mode::cut_off, Mode::garbage, Mode::error_500, Mode::wrong_range,
        Mode::too_long, Mode::short_file, Mode::not_http, Mode::ignore_range}) {
    TestHttpServer bad(bytes_, mode), good(bytes_, Mode::good);
    auto source = http({{bad.url(), 0}, {good.url(), 1}});
    ASSERT_TRUE(source) << source.error().to_string() << " mode " << static_cast<int>(mode);
    expect_exact(*std::move(source));
  }
}

TEST_F(LoaderTest, AMirrorThatTurnsBadLeavesWhatCameBefore) {
  TestHttpServer server(bytes_, Mode::good);
  auto source = http({{server.url()}});
  ASSERT_TRUE(source);
  const auto began = std::chrono::steady_clock::now();
  std::atomic<unsigned> seen = 0;
  auto loader = *Loader::start(*std::move(source), {.retries = 0, .on_progress = [&](auto&) {
                                                      if (++seen == 6)
                                                        server.set_mode(Mode::garbage);
                                                    }});
  const Status status = loader->wait();
  ASSERT_FALSE(status);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
  size_t usable = 0;
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto loaded = loader->get(names_[i], DType::f32);
    if (!loaded) continue;
    ++usable;
    // The measured error is what the quality says, so no garbage got in.
    double error = 0, energy = 0;
    const auto* got = reinterpret_cast<const float*>(loaded->bytes.data());
    const auto* source_values = reinterpret_cast<const float*>(sources_[i].data());
    for (size_t j = 0; j < sources_[i].size() / 4; ++j) {
      error += std::pow(double{got[j]} - source_values[j], 2);
      energy += std::pow(double{source_values[j]}, 2);
    }
    EXPECT_LE(error / energy, loaded->quality.nmse * 1.05 + 1e-12) << names_[i];
  }
  EXPECT_GT(usable, 0u);
}

TEST_F(LoaderTest, CancellingAStalledLoadReturnsAtOnce) {
  TestHttpServer server(bytes_, Mode::good);
  auto options = quick();
  options.stall_timeout = options.request_timeout = std::chrono::minutes(1);
  auto source = remote_fragments(*HttpByteSource::create({{server.url()}}, options));
  server.set_mode(Mode::silent);
  auto loader = *Loader::start(*std::move(source));
  EXPECT_FALSE(loader->wait_for(milliseconds(100)));
  const auto began = std::chrono::steady_clock::now();
  loader->cancel();
  const Status status = loader->wait();
  EXPECT_EQ(status.error().code(), ErrorCode::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  EXPECT_TRUE(loader->progress().finished);
}

TEST_F(LoaderTest, ReportsProgressAndCanBeReadMeanwhile) {
  TestHttpServer server(bytes_, Mode::slow);
  std::vector<LoadProgress> reports;
  std::vector<std::pair<size_t, double>> improvements;
  auto loader = *Loader::start(
      *http({{server.url()}}),
      {.on_progress = [&](const LoadProgress& progress) { reports.push_back(progress); },
       .on_improved = [&](size_t t, const Quality& q) { improvements.emplace_back(t, q.nmse); }});
  size_t reads = 0;
  double last = 2;
  while (!loader->wait_for(milliseconds(5))) {
    if (const auto loaded = loader->get("attention.q", DType::f32)) {
      ++reads;
      EXPECT_LE(loaded->quality.nmse, last);
      last = loaded->quality.nmse;
    }
  }
  ASSERT_TRUE(loader->wait());
  EXPECT_GT(reads, 0u);
  EXPECT_EQ(reports.size(), reports.back().fragments_wanted + 1);
  EXPECT_TRUE(reports.back().finished);
  for (size_t i = 1; i < reports.size(); ++i) {
    EXPECT_GE(reports[i].bytes_loaded, reports[i - 1].bytes_loaded);
  }
  EXPECT_EQ(std::ranges::count(improvements, size_t{0}, [](const auto& i) { return i.first; }), 6)
      << "every fragment improves the spectral tensor";
}

TEST_F(LoaderTest, FragmentsOfTheFirstQualityComeFirst) {
  std::vector<std::pair<size_t, double>> order;
  auto loader = *Loader::start(
      memory_fragments(encoded_),
      {.tensors = {"attention.q", "attention.k"},
       .first = QualityTarget::nmse(0.6),
       .on_improved = [&](size_t t, const Quality& q) { order.emplace_back(t, q.nmse); }});
  ASSERT_TRUE(loader->wait());
  size_t ready = 0;
  for (size_t i = 0; i < order.size() && ready < 2; ++i) {
    if (order[i].second <= 0.6) ++ready;
    EXPECT_LT(i, 6u) << "both are at 0.6 after three fragments each";
  }
}

TEST_F(LoaderTest, HeadersThatLieAndFilesThatAreNoneAreRefused) {
  EXPECT_FALSE(file_fragments(folder_ / "nothing.ht"));
  EXPECT_FALSE(folder_fragments(folder_ / "nothing"));
  for (size_t i = 0; i < 64; ++i) {
    auto damaged = bytes_;
    damaged[i] ^= std::byte{0x40};
    EXPECT_FALSE(remote_fragments(memory_byte_source(damaged))) << "byte " << i;
  }
  for (const size_t size : {0, 10, 63, 64, 100}) {
    const std::span<const std::byte> cut(bytes_.data(), size);
    EXPECT_FALSE(remote_fragments(memory_byte_source(cut))) << size << " bytes";
  }
}

}  // namespace
}  // namespace hologram::holotensor
