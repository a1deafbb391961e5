// CpuBackend: programs as native code or interpreted, built-in kernels with Highway, host memory.
#pragma once

#include <atomic>
#include <memory>

#include "backends/backend.h"
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/slot_pool.h"

namespace hologram::backends {

struct CpuOptions {
  unsigned threads = 0;        // that one launch may use; 0: all of the pool
  ThreadPool* pool = nullptr;  // null: the process's; must outlive the backend
  uint64_t max_buffer_bytes = uint64_t{1} << 40;
  uint64_t pool_bytes = SlotPool::kDefaultSlots * SlotPool::kSlotBytes;
  // false: every program by the reference interpreter, for comparing.
  bool native = true;
  // Native code of at most this level; empty: the best this CPU runs.
  std::string level;
};

class CpuBackend final : public Backend {
 public:
  static Result<std::unique_ptr<CpuBackend>> create(const CpuOptions& options = {});
  ~CpuBackend() override;

  MemoryStatistics memory_statistics() const override;
  std::span<const Builtin> builtins() const override;

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
  CpuBackend(Capabilities capabilities, CpuContext context, uint64_t pool_bytes);

  CpuContext context_;
  SlotPool pool_;
  std::atomic<uint64_t> live_bytes_ = 0, pool_hits_ = 0, direct_ = 0;
};

}  // namespace hologram::backends
