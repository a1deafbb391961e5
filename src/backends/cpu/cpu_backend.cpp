#include "backends/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/builtin/table.h"
#include "backends/cpu/cpu_level.h"

namespace hologram::backends {
namespace {

// A tag is a run of slots (first << 32 | count), or the address of the AlignedBytes that owns a
// direct allocation. User-space addresses do not reach the top bit, which marks the runs.
constexpr uint64_t kSlotTag = uint64_t{1} << 63;

class CpuPreparedLaunch final : public PreparedLaunch {
 public:
  CpuPreparedLaunch(const CpuKernel& kernel, const CpuContext& context, const LaunchShape& shape,
                    Words words, Words lengths)
      : PreparedLaunch(kernel, shape, std::move(words), std::move(lengths)),
        cpu_kernel_(kernel),
        context_(context) {}

  Status run() override {
    return cpu_kernel_.run(context_, shape_, words_.data(), lengths_.data());
  }

 private:
  const CpuKernel& cpu_kernel_;
  const CpuContext context_;
};

}  // namespace

Result<std::unique_ptr<CpuBackend>> CpuBackend::create(const CpuOptions& options) {
  std::string level(options.native ? host_level() : "");
  if (!options.level.empty() && options.native) {
    if (level_rank(options.level) == 0)
      return fail(ErrorCode::invalid_argument,
                  "'{}' is no CPU level; there are x86-64-v2, x86-64-v3 and x86-64-v4",
                  options.level);
    if (level_rank(options.level) > level_rank(level))
      return fail(ErrorCode::unsupported, "this CPU does not run {}; its level is {}",
                  options.level, level.empty() ? "older than x86-64-v2" : level);
    level = options.level;
  }
  CpuContext context;
  context.pool = options.pool ? options.pool : &ThreadPool::shared();
  context.threads =
      options.threads ? std::min(options.threads, context.pool->size()) : context.pool->size();
  Capabilities capabilities;
  capabilities.backend = "cpu";
  capabilities.device = fmt::format("{}, {} thread{}", level.empty() ? "interpreter" : level,
                                    context.threads, context.threads == 1 ? "" : "s");
  capabilities.level = level;
  capabilities.host_memory = true;
  capabilities.threads = context.threads;
  capabilities.max_blocks = uint64_t{1} << 48;
  capabilities.max_block_threads = isa::kMaxBlockThreads;
  capabilities.max_shared_bytes = isa::kMaxDynamicSharedBytes;
  capabilities.max_buffer_bytes = options.max_buffer_bytes;
  return std::unique_ptr<CpuBackend>(
      new CpuBackend(std::move(capabilities), context, options.pool_bytes));
}

CpuBackend::CpuBackend(Capabilities capabilities, CpuContext context, uint64_t pool_bytes)
    : Backend(std::move(capabilities)), context_(context), pool_(pool_bytes) {}

CpuBackend::~CpuBackend() = default;

Result<Backend::Block> CpuBackend::do_allocate(uint64_t bytes, Lifetime lifetime) {
  if (lifetime == Lifetime::short_lived) {
    if (const auto run = pool_.take(bytes)) {
      pool_hits_.fetch_add(1, std::memory_order_relaxed);
      live_bytes_.fetch_add(bytes, std::memory_order_relaxed);
      return Block{run->address, kSlotTag | uint64_t{run->first} << 32 | run->count};
    }
  }
  HOLOGRAM_TRY(AlignedBytes memory, AlignedBytes::allocate(bytes));
  auto* owner = new AlignedBytes(std::move(memory));
  direct_.fetch_add(1, std::memory_order_relaxed);
  live_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return Block{owner->data(), reinterpret_cast<uintptr_t>(owner)};
}

void CpuBackend::do_release(void*, uint64_t bytes, uint64_t tag) {
  live_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  if (tag & kSlotTag)
    pool_.give_back(static_cast<uint32_t>((tag & ~kSlotTag) >> 32), static_cast<uint32_t>(tag));
  else
    delete reinterpret_cast<AlignedBytes*>(tag);
}

MemoryStatistics CpuBackend::memory_statistics() const {
  return {live_bytes_.load(), pool_.slots(), pool_.slots_used(), pool_hits_.load(), direct_.load()};
}

Status CpuBackend::do_write(void* to, std::span<const std::byte> from) {
  std::memcpy(to, from.data(), from.size());
  return {};
}

Status CpuBackend::do_read(const void* from, std::span<std::byte> to) {
  std::memcpy(to.data(), from, to.size());
  return {};
}

Status CpuBackend::do_copy(void* to, const void* from, uint64_t bytes) {
  std::memmove(to, from, bytes);
  return {};
}

Result<std::unique_ptr<Kernel>> CpuBackend::do_load(isa::Program program,
                                                    std::span<const isa::NativeCode> native) {
  const int limit = level_rank(capabilities().level);
  const isa::NativeCode* best = nullptr;
  for (const isa::NativeCode& code : native) {
    const int rank = level_rank(code.level);
    if (rank != 0 && rank <= limit && (!best || rank > level_rank(best->level))) best = &code;
  }
  return CpuKernel::create(std::move(program), best);
}

Status CpuBackend::do_launch(const Kernel& kernel, const LaunchShape& shape, const uint64_t* words,
                             const uint64_t* lengths) {
  return static_cast<const CpuKernel&>(kernel).run(context_, shape, words, lengths);
}

Result<std::unique_ptr<PreparedLaunch>> CpuBackend::do_prepare(const Kernel& kernel,
                                                               const LaunchShape& shape,
                                                               PreparedLaunch::Words words,
                                                               PreparedLaunch::Words lengths) {
  return std::make_unique<CpuPreparedLaunch>(static_cast<const CpuKernel&>(kernel), context_, shape,
                                             std::move(words), std::move(lengths));
}

std::span<const Builtin> CpuBackend::builtins() const { return cpu_builtins(); }

Status CpuBackend::do_call(const Builtin& builtin, const uint64_t* words, const uint64_t* lengths) {
  return reinterpret_cast<CpuBuiltinEntry>(builtin.entry)(context_, words, lengths);
}

}  // namespace hologram::backends
