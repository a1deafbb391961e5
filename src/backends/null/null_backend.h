// NullBackend: checks everything and computes nothing. The skeleton for a new backend: clone this
// folder, give each do_* function a body, add a line to registry.cpp.
//
// It is of use by itself: every refusal of the common checks can be seen without a device, and its
// launches cost nothing when only the host's side is to be measured. Memory is host memory so that
// copies in and out work; a program leaves it untouched.
#pragma once

#include <atomic>
#include <memory>

#include "backends/backend.h"

namespace hologram::backends {

class NullBackend final : public Backend {
 public:
  static Result<std::unique_ptr<NullBackend>> create(uint64_t max_buffer_bytes = uint64_t{1} << 40);

  MemoryStatistics memory_statistics() const override;
  std::span<const Builtin> builtins() const override { return {}; }
  // Launches that passed the checks.
  uint64_t launches() const { return launches_.load(); }

 protected:
  Result<Block> do_allocate(uint64_t bytes, Lifetime lifetime) override;
  void do_release(void* address, uint64_t bytes, uint64_t tag) override;
  Status do_write(void* to, std::span<const std::byte> from) override;
  Status do_read(const void* from, std::span<std::byte> to) override;
  Status do_copy(void* to, const void* from, uint64_t bytes) override;
  Result<std::unique_ptr<Kernel>> do_load(isa::Program program,
                                          std::span<const isa::NativeCode> native) override;
  Status do_launch(const Kernel& kernel, const LaunchShape& shape, const uint64_t* words,
                   const uint64_t* lengths) override;
  Result<std::unique_ptr<PreparedLaunch>> do_prepare(const Kernel& kernel, const LaunchShape& shape,
                                                     PreparedLaunch::Words words,
                                                     PreparedLaunch::Words lengths) override;
  Status do_call(const Builtin& builtin, const uint64_t* words, const uint64_t* lengths) override;

 private:
  explicit NullBackend(Capabilities capabilities) : Backend(std::move(capabilities)) {}
  friend class NullPreparedLaunch;

  std::atomic<uint64_t> live_bytes_ = 0, direct_ = 0, launches_ = 0;
};

}  // namespace hologram::backends
