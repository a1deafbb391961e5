#include "holotensor/source/http_source.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "holotensor/source/test_http_server.h"
#include "support/hash.h"

namespace hologram::holotensor {
namespace {

using Mode = TestHttpServer::Mode;
using std::chrono::milliseconds;

Bytes some_file(size_t size = 200000) {
  Bytes bytes(size);
  uint64_t state = 7;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

HttpOptions quick() {
  return {.parallel = 4,
          .attempts = 3,
          .connect_timeout = milliseconds(1000),
          .stall_timeout = milliseconds(150),
          .minimum_bytes_per_second = 2000,
          .request_timeout = milliseconds(3000),
          .retry_delay = milliseconds(5),
          .mirror_cool_off = milliseconds(500)};
}

std::vector<ByteRange> hashed_ranges(const Bytes& file, size_t count) {
  std::vector<ByteRange> ranges;
  const size_t part = file.size() / count;
  for (size_t i = 0; i < count; ++i) {
    ranges.push_back(hashed_range(i * part, part, hash64(std::span(file).subspan(i * part, part))));
  }
  return ranges;
}

std::unique_ptr<HttpByteSource> source_of(std::vector<Mirror> mirrors,
                                          HttpOptions options = quick()) {
  return *HttpByteSource::create(std::move(mirrors), options);
}

// Every range comes once; counts the good ones, and fails the test on a wrong byte.
size_t read_all(ByteSource& source, const Bytes& file, const std::vector<ByteRange>& ranges) {
  std::map<size_t, int> seen;
  size_t good = 0;
  const Status status = source.read(ranges, {}, [&](size_t i, Result<Bytes> bytes) {
    ++seen[i];
    if (!bytes) return;
    ++good;
    const auto expected = std::span(file).subspan(ranges[i].offset, ranges[i].size);
    EXPECT_TRUE(std::ranges::equal(*bytes, expected)) << "range " << i;
  });
  EXPECT_TRUE(status) << status.error().to_string();
  EXPECT_EQ(seen.size(), ranges.size());
  for (const auto& [i, times] : seen) EXPECT_EQ(times, 1) << "range " << i;
  return good;
}

TEST(HttpSource, ReadsRangesInParallel) {
  const Bytes file = some_file();
  TestHttpServer server(file, Mode::slow);
  auto source = source_of({{server.url()}});
  ASSERT_EQ(source->size().value(), file.size());
  EXPECT_EQ(read_all(*source, file, hashed_ranges(file, 16)), 16u);
  EXPECT_GE(server.most_at_once(), 2u);
  EXPECT_LE(server.most_at_once(), 4u);
  EXPECT_EQ(source->mirror_stats()[0].failures, 0u);
  EXPECT_GT(source->mirror_stats()[0].bytes_per_second, 0);
}

TEST(HttpSource, ReadsWithoutChecksEmptyRangesAndRefusesRangesOutside) {
  const Bytes file = some_file(1000);
  TestHttpServer server(file, Mode::good);
  auto source = source_of({{server.url()}});
  EXPECT_EQ(source->read_one({990, 10})->size(), 10u);
  EXPECT_EQ(source->read_one({1000, 0})->size(), 0u);
  EXPECT_EQ(source->read_one({990, 11}).error().code(), ErrorCode::out_of_range);
  EXPECT_EQ(source->read_one({UINT64_MAX, 2}).error().code(), ErrorCode::out_of_range);
  EXPECT_EQ(source->read_one({UINT64_MAX - 1, 5}).error().code(), ErrorCode::out_of_range);
}

// A mirror that misbehaves and is asked first: the good one behind it must give every byte.
class BadMirror : public testing::TestWithParam<Mode> {};

TEST_P(BadMirror, FailsOverToTheGoodOne) {
  const Bytes file = some_file();
  TestHttpServer bad(file, GetParam()), good(file, Mode::good);
  auto source = source_of({{bad.url(), 0}, {good.url(), 1}});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(read_all(*source, file, hashed_ranges(file, 8)), 8u);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  EXPECT_GE(bad.requests(), 1u) << "the priority says that it is asked first";
  const auto stats = source->mirror_stats();
  if (GetParam() == Mode::short_file) {
    EXPECT_EQ(stats[0].successes + stats[1].successes, 8u);  // its first half is good
  } else {
    EXPECT_EQ(stats[0].successes, 0u);
    EXPECT_GE(stats[0].failures, 1u);
    EXPECT_FALSE(stats[0].last_error.empty());
  }
}

TEST_P(BadMirror, AloneGivesErrorsInBoundedTime) {
  const Bytes file = some_file();
  TestHttpServer bad(file, GetParam());
  auto source = source_of({{bad.url(), 0}});
  const auto began = std::chrono::steady_clock::now();
  const size_t expected = GetParam() == Mode::short_file ? 4 : 0;
  EXPECT_EQ(read_all(*source, file, hashed_ranges(file, 8)), expected);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

INSTANTIATE_TEST_SUITE_P(Modes, BadMirror,
                         testing::Values(Mode::stall, Mode::silent, Mode::cut_off, Mode::garbage,
                                         Mode::error_500, Mode::wrong_range, Mode::too_long,
                                         Mode::short_file, Mode::not_http, Mode::drip));

TEST(HttpSource, UsesAServerThatIgnoresRangeWhileSkippingIsCheap) {
  const Bytes file = some_file();
  TestHttpServer server(file, Mode::ignore_range);
  auto source = source_of({{server.url()}});
  EXPECT_EQ(source->size().value(), file.size());
  EXPECT_EQ(read_all(*source, file, hashed_ranges(file, 8)), 8u);

  HttpOptions options = quick();
  options.skip_limit = 100000;
  auto careful = source_of({{server.url()}}, options);
  EXPECT_EQ(read_all(*careful, file, hashed_ranges(file, 8)), 5u);  // offsets 0, 25000 .. 100000
}

TEST(HttpSource, AMirrorThatIsNotThereIsAnError) {
  std::string url;
  {
    TestHttpServer gone(some_file(10), Mode::good);
    url = gone.url();
  }
  auto source = source_of({{url}});
  const auto size = source->size();
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code(), ErrorCode::io_error);
  EXPECT_NE(size.error().message().find(url), std::string::npos) << size.error().to_string();
}

TEST(HttpSource, RecoversWhenTheOnlyMirrorDoes) {
  const Bytes file = some_file();
  TestHttpServer server(file, Mode::error_500);
  HttpOptions options = quick();
  options.attempts = 50;
  auto source = source_of({{server.url()}}, options);
  std::thread repair([&] {
    std::this_thread::sleep_for(milliseconds(100));
    server.set_mode(Mode::good);
  });
  EXPECT_EQ(read_all(*source, file, hashed_ranges(file, 4)), 4u);
  repair.join();
}

TEST(HttpSource, PrefersTheFasterOfTwoEqualMirrors) {
  const Bytes file = some_file();
  TestHttpServer slow(file, Mode::slow), fast(file, Mode::good);
  HttpOptions options = quick();
  options.parallel = 1;
  auto source = source_of({{slow.url()}, {fast.url()}}, options);
  EXPECT_EQ(read_all(*source, file, hashed_ranges(file, 20)), 20u);
  EXPECT_GT(fast.requests(), 2 * slow.requests());
  EXPECT_GE(slow.requests(), 2u) << "it is tried again now and then";
}

TEST(HttpSource, CancellingStopsAStalledRead) {
  const Bytes file = some_file();
  TestHttpServer server(file, Mode::silent);
  HttpOptions options = quick();
  options.stall_timeout = options.request_timeout = std::chrono::seconds(60);
  auto source = source_of({{server.url()}}, options);
  CancelToken cancel;
  std::thread stop([&] {
    std::this_thread::sleep_for(milliseconds(100));
    cancel.cancel();
  });
  const auto began = std::chrono::steady_clock::now();
  const Status status =
      source->read(hashed_ranges(file, 4), cancel, [](size_t, Result<Bytes>) { ADD_FAILURE(); });
  stop.join();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
}

TEST(HttpSource, RefusesBadArguments) {
  EXPECT_EQ(HttpByteSource::create({}).error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(HttpByteSource::create({{"file:///etc/passwd"}}).error().code(),
            ErrorCode::invalid_argument);
  EXPECT_EQ(HttpByteSource::create({{"http://x"}}, {.parallel = 0}).error().code(),
            ErrorCode::invalid_argument);
}

TEST(MirrorList, GoesByPriorityThenUnknownThenSpeedAndLetsFailuresRest) {
  const auto now = MirrorList::Clock::now();
  MirrorList list({{"a", 1}, {"b", 0}, {"c", 0}}, milliseconds(100));
  EXPECT_EQ(list.choose(now), 1u);
  list.started(1);
  list.succeeded(1, 1000, std::chrono::seconds(1));
  EXPECT_EQ(list.choose(now), 2u) << "its speed is not known yet";
  list.started(2);
  list.succeeded(2, 5000, std::chrono::seconds(1));
  EXPECT_EQ(list.choose(now), 2u);
  list.started(2);
  list.failed(2, now, "broken");
  EXPECT_EQ(list.choose(now), 1u);
  EXPECT_EQ(list.choose(now + milliseconds(101)), 2u) << "it has rested";
  list.started(1);
  list.failed(1, now, "broken");
  EXPECT_EQ(list.choose(now), 0u) << "priority 1 is used when priority 0 rests";
  const size_t avoid[] = {0};
  EXPECT_NE(list.choose(now, avoid), 0u);

  MirrorList two({{"slow"}, {"fast"}}, milliseconds(100));
  size_t asked_slow = 0;
  for (int i = 0; i < 80; ++i) {
    const size_t chosen = two.choose(now);
    asked_slow += chosen == 0;
    two.started(chosen);
    two.succeeded(chosen, 1000, std::chrono::milliseconds(chosen == 0 ? 100 : 1));
  }
  EXPECT_EQ(asked_slow, 11u) << "once to measure it, and then every eighth time";
}

}  // namespace
}  // namespace hologram::holotensor
