#include "backends/null/null_backend.h"

#include <cstring>

#include "support/aligned.h"

namespace hologram::backends {

class NullPreparedLaunch final : public PreparedLaunch {
 public:
  NullPreparedLaunch(NullBackend& backend, const Kernel& kernel, const LaunchShape& shape,
                     Words words, Words lengths)
      : PreparedLaunch(kernel, shape, std::move(words), std::move(lengths)), backend_(backend) {}

  Status run() override {
    return backend_.do_launch(kernel_, shape_, words_.data(), lengths_.data());
  }

 private:
  NullBackend& backend_;
};

Result<std::unique_ptr<NullBackend>> NullBackend::create(uint64_t max_buffer_bytes) {
  Capabilities capabilities;
  capabilities.backend = "null";
  capabilities.device = "computes nothing";
  capabilities.host_memory = true;
  capabilities.max_blocks = uint64_t{1} << 48;
  capabilities.max_block_threads = isa::kMaxBlockThreads;
  capabilities.max_shared_bytes = isa::kMaxDynamicSharedBytes;
  capabilities.max_buffer_bytes = max_buffer_bytes;
  return std::unique_ptr<NullBackend>(new NullBackend(std::move(capabilities)));
}

MemoryStatistics NullBackend::memory_statistics() const {
  return {.live_bytes = live_bytes_.load(), .direct = direct_.load()};
}

Result<Backend::Block> NullBackend::do_allocate(uint64_t bytes, Lifetime) {
  HOLOGRAM_TRY(AlignedBytes memory, AlignedBytes::allocate(bytes));
  auto* owner = new AlignedBytes(std::move(memory));
  direct_ += 1;
  live_bytes_ += bytes;
  return Block{owner->data(), reinterpret_cast<uintptr_t>(owner)};
}

void NullBackend::do_release(void*, uint64_t bytes, uint64_t tag) {
  live_bytes_ -= bytes;
  delete reinterpret_cast<AlignedBytes*>(tag);
}

Status NullBackend::do_write(void* to, std::span<const std::byte> from) {
  std::memcpy(to, from.data(), from.size());
  return {};
}

Status NullBackend::do_read(const void* from, std::span<std::byte> to) {
  std::memcpy(to.data(), from, to.size());
  return {};
}

Status NullBackend::do_copy(void* to, const void* from, uint64_t bytes) {
  std::memmove(to, from, bytes);
  return {};
}

Result<std::unique_ptr<Kernel>> NullBackend::do_load(isa::Program program,
                                                     std::span<const isa::NativeCode>) {
  return std::make_unique<Kernel>(std::move(program));
}

Status NullBackend::do_launch(const Kernel&, const LaunchShape&, const uint64_t*, const uint64_t*) {
  launches_ += 1;
  return {};
}

Result<std::unique_ptr<PreparedLaunch>> NullBackend::do_prepare(const Kernel& kernel,
                                                                const LaunchShape& shape,
                                                                PreparedLaunch::Words words,
                                                                PreparedLaunch::Words lengths) {
  return std::make_unique<NullPreparedLaunch>(*this, kernel, shape, std::move(words),
                                              std::move(lengths));
}

Status NullBackend::do_call(const Builtin&, const uint64_t*, const uint64_t*) { return {}; }

}  // namespace hologram::backends
