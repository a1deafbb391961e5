// FirstFailure: the error of work that several threads share.
#pragma once

#include <mutex>

#include "support/result.h"

namespace hologram::holotensor {

class FirstFailure {
 public:
  // False when `status` is an error; only the first is kept.
  bool ok(Status status) {
    if (status) return true;
    const std::lock_guard lock(mutex_);
    if (failure_) failure_ = std::move(status);
    return false;
  }
  // When all threads are done.
  Status status() { return std::move(failure_); }

 private:
  std::mutex mutex_;
  Status failure_;
};

}  // namespace hologram::holotensor
