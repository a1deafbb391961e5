// TestHttpServer: a real HTTP/1.1 server on loopback for tests, which can also misbehave.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace hologram::holotensor {

class TestHttpServer {
 public:
  enum class Mode {
    good,          // serves ranges
    stall,         // sends half of the body and then nothing
    silent,        // accepts and never answers
    cut_off,       // sends half of the body and closes
    garbage,       // the right length, the wrong bytes
    ignore_range,  // 200 and the whole file, whatever was asked
    error_500,
    wrong_range,  // 206 with bytes from elsewhere, and says so
    too_long,     // 206 with more bytes than asked for
    short_file,   // a copy that lost its second half
    not_http,     // an answer that is no HTTP at all
    drip,         // a byte every 20 ms
    slow,         // good, but each answer begins 60 ms late
  };

  TestHttpServer(std::vector<std::byte> file, Mode mode);
  ~TestHttpServer();
  TestHttpServer(const TestHttpServer&) = delete;
  TestHttpServer& operator=(const TestHttpServer&) = delete;

  std::string url() const;
  unsigned requests() const;
  // The most requests that were being answered at once.
  unsigned most_at_once() const;
  void set_mode(Mode mode);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hologram::holotensor
