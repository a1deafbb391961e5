// HttpByteSource: ranges of a file that one or more HTTP(S) mirrors hold.
//
// Requests run in parallel on one thread (libcurl's multi interface). Nothing a mirror does can
// hang a read or change its result: a mirror that is slow, stalls, breaks off, answers with an
// error, with another length, or with bytes that fail their check has failed that request, which
// then goes to the next mirror by priority and measured speed, until its attempts are used up. A
// server that ignores Range is used while skipping to the range is cheap.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "holotensor/source/byte_source.h"
#include "holotensor/source/mirror_list.h"

namespace hologram::holotensor {

struct HttpOptions {
  unsigned parallel = 4;  // requests in flight
  unsigned attempts = 4;  // for each range, over all mirrors
  std::chrono::milliseconds connect_timeout{3000};
  // A request that gets fewer than minimum_bytes_per_second over this long has stalled.
  std::chrono::milliseconds stall_timeout{5000};
  uint64_t minimum_bytes_per_second = 1024;
  // For one whole request; 0: none beside the stall limit.
  std::chrono::milliseconds request_timeout{120000};
  // Before a second attempt; doubles with each further one.
  std::chrono::milliseconds retry_delay{50};
  std::chrono::milliseconds mirror_cool_off{2000};
  // How much of a body is skipped to reach a range on a server that ignores Range.
  uint64_t skip_limit = uint64_t{64} << 20;
};

class HttpByteSource final : public ByteSource {
 public:
  // Fails on an empty list and on addresses that are not http:// or https://. Asks nothing yet.
  static Result<std::unique_ptr<HttpByteSource>> create(std::vector<Mirror> mirrors,
                                                        HttpOptions options = {});
  ~HttpByteSource() override;

  std::string name() const override;
  // Asked of the first mirror that answers, then remembered.
  Result<uint64_t> size() override;
  // A range with a check is not held against size(): only the check is believed, so that one
  // mirror with a damaged copy does not hide the others. Without a check, a mirror whose file has
  // another size than size() is not used.
  Status read(std::span<const ByteRange> ranges, const CancelToken& cancel,
              DeliverRange deliver) override;

  std::vector<MirrorStats> mirror_stats() const;

 private:
  struct Impl;
  explicit HttpByteSource(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hologram::holotensor
