#include "holotensor/policy/hot_reload.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "holotensor/classical/seeded_random.h"
#include "holotensor/encoder.h"
#include "support/hash.h"

namespace hologram::holotensor {
namespace {

// Hands fragments over slowly, one by one; can be told to fail some.
class SlowSource final : public FragmentSource {
 public:
  SlowSource(std::vector<EncodedTensor> tensors, std::chrono::microseconds pause)
      : inner_(memory_fragments(std::move(tensors))), pause_(pause) {}
  std::string name() const override { return "slow"; }
  const std::vector<TensorInfo>& tensors() const override { return inner_->tensors(); }
  Status fetch(std::span<const FragmentRequest> requests, const CancelToken& cancel,
               DeliverFragment deliver) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      std::this_thread::sleep_for(pause_);
      if (failing.contains(requests[i].fragment)) {
        HOLOGRAM_CHECK(cancel.check());
        deliver(i, fail(ErrorCode::io_error, "it never comes"));
        continue;
      }
      HOLOGRAM_CHECK(
          inner_->fetch(requests.subspan(i, 1), cancel,
                        [&](size_t, Result<SharedBytes> bytes) { deliver(i, std::move(bytes)); }));
    }
    return {};
  }
  std::set<uint16_t> failing;

 private:
  std::unique_ptr<FragmentSource> inner_;
  std::chrono::microseconds pause_;
};

EncodedTensor encode(std::string name, size_t rows, size_t columns, uint16_t fragments) {
  SeededRandom random(rows);
  std::vector<float> values(rows * columns);
  for (float& value : values) value = static_cast<float>(random.normal());
  const int64_t shape[] = {int64_t(rows), int64_t(columns)};
  return *Encoder({.scheme = SchemeId::spectral, .fragments = fragments})
              .encode({name, DType::f32, shape, std::as_bytes(std::span(values))});
}

// What every number of fragments must give, to the bit.
std::map<double, uint64_t> expected_versions(const EncodedTensor& tensor) {
  std::map<double, uint64_t> hashes;
  auto decoder = *Decoder::create(tensor.info);
  for (const auto& fragment : tensor.fragments) {
    EXPECT_TRUE(decoder.add_fragment(SharedBytes::borrowed(fragment)));
    hashes[decoder.quality().nmse] = hash64(*decoder.reconstruct());
  }
  return hashes;
}

TEST(HotReload, NoReaderEverSeesAnythingButAWholeVersion) {
  const std::vector<EncodedTensor> tensors = {encode("a", 64, 96, 12), encode("b", 50, 70, 6)};
  std::map<std::string, std::map<double, uint64_t>> expected;
  for (const auto& tensor : tensors) expected[tensor.info.name] = expected_versions(tensor);

  auto reload =
      *HotReload::start(std::make_unique<SlowSource>(tensors, std::chrono::microseconds(3000)),
                        {.first = QualityTarget::nmse(0.8)});
  ASSERT_TRUE(reload->wait_ready());
  std::atomic<bool> stop = false;
  std::atomic<size_t> reads = 0, wrong = 0, backwards = 0, distinct = 0;
  std::vector<std::thread> readers;
  for (int r = 0; r < 4; ++r) {
    readers.emplace_back([&, r] {
      const std::string name = r % 2 ? "a" : "b";
      uint64_t last = 0;
      std::vector<HotTensor> kept;  // some hold on to old versions
      while (!stop) {
        const HotTensor version = *reload->read(name);
        if (version->number < last) ++backwards;
        if (version->number != last) {
          ++distinct;
          if (r < 2) kept.push_back(version);
        }
        last = version->number;
        const uint64_t expected_hash = expected[name][version->quality.nmse];
        if (hash64(version->bytes()) != expected_hash) ++wrong;
        std::this_thread::yield();
        if (hash64(version->bytes()) != expected_hash) ++wrong;
        ++reads;
      }
      for (const HotTensor& version : kept) {
        if (hash64(version->bytes()) != expected[name][version->quality.nmse]) ++wrong;
      }
    });
  }
  ASSERT_TRUE(reload->wait_complete());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(backwards, 0u);
  EXPECT_GT(reads, 10u);
  EXPECT_GT(distinct, 8u) << "readers saw it improve";
  for (const char* name : {"a", "b"}) EXPECT_TRUE((*reload->read(name))->quality.exact);
}

TEST(HotReload, IsReadyAtTheFirstQualityAndNotBefore) {
  const std::vector<EncodedTensor> tensors = {encode("a", 64, 64, 8)};
  std::vector<double> published;
  auto reload =
      *HotReload::start(std::make_unique<SlowSource>(tensors, std::chrono::microseconds(2000)),
                        {.first = QualityTarget::nmse(0.55),
                         .target = QualityTarget::nmse(0.2),
                         .type = DType::bf16,
                         .on_version = [&](size_t, const HotTensor& version) {
                           published.push_back(version->quality.nmse);
                         }});
  while (!reload->ready()) {
    const HotTensor early = *reload->read("a");
    if (early) {
      EXPECT_LE(early->quality.nmse, 0.55);
    }
  }
  const HotTensor first = *reload->read("a");
  EXPECT_EQ(first->type, DType::bf16);
  EXPECT_EQ(first->bytes().size(), 64u * 64 * 2);
  ASSERT_TRUE(reload->wait_complete());
  ASSERT_GE(published.size(), 2u);
  EXPECT_LE(published.front(), 0.55);
  EXPECT_LE(published.back(), 0.2);
  EXPECT_FALSE((*reload->read("a"))->quality.exact) << "it stops at the target";
  EXPECT_FALSE(reload->read("nothing"));
  EXPECT_EQ(reload->read(size_t{5}), nullptr);
}

TEST(HotReload, VersionsOutliveTheReloadAndCancellingEndsIt) {
  HotTensor kept;
  {
    auto reload =
        *HotReload::start(std::make_unique<SlowSource>(std::vector{encode("a", 64, 64, 8)},
                                                       std::chrono::milliseconds(20)),
                          {.first = QualityTarget::nmse(0.95)});
    ASSERT_TRUE(reload->wait_ready());
    kept = *reload->read("a");
    reload->cancel();
    EXPECT_EQ(reload->wait_complete().error().code(), ErrorCode::cancelled);
  }
  EXPECT_NE(hash64(kept->bytes()), 0u);
}

TEST(HotReload, SaysWhyItDoesNotGetReady) {
  auto source = std::make_unique<SlowSource>(std::vector{encode("a", 64, 64, 8)},
                                             std::chrono::microseconds(1));
  source->failing = {0, 1, 2, 3, 4, 5};
  auto reload = *HotReload::start(std::move(source), {.first = QualityTarget::nmse(0.3)});
  const Status status = reload->wait_ready();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message().find("it never comes"), std::string::npos)
      << status.error().to_string();
  EXPECT_EQ(*reload->read("a"), nullptr);
}

}  // namespace
}  // namespace hologram::holotensor
