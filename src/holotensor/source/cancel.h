// CancelToken: asks work on other threads to stop. Copies share one flag; safe from any thread.
#pragma once

#include <atomic>
#include <memory>

#include "support/result.h"

namespace hologram::holotensor {

class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}

  void cancel() const { flag_->store(true, std::memory_order_release); }
  bool cancelled() const { return flag_->load(std::memory_order_acquire); }
  // An error once cancelled.
  Status check() const {
    if (cancelled()) return fail(ErrorCode::cancelled, "loading was cancelled");
    return {};
  }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace hologram::holotensor
