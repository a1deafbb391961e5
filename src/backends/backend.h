// backends: where programs run. This header is the whole contract between the runtime and a device.
//
// A backend owns memory, loads programs, launches them over a grid and offers built-in kernels.
// The public functions check everything that can be checked and refuse what cannot be right before
// anything runs; a backend implements the do_* functions and may rely on the checks. To add one,
// clone `null/`, implement the do_* functions, and add a line to registry.cpp.
//
// Threads: every function of Backend may be called from any thread. A Kernel is immutable once
// loaded. A PreparedLaunch belongs to one thread at a time.
// Lifetime: Memory, Kernel and PreparedLaunch must be gone before their Backend is.
// Order: calls return when their work is done and visible; a backend that queues work keeps the
// order of calls and makes read() and synchronize() wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/access_bounds.h"
#include "backends/argument.h"
#include "isa/launch.h"
#include "isa/native_abi.h"
#include "isa/native_code.h"
#include "isa/program.h"
#include "support/result.h"

namespace hologram::backends {

class Backend;

using isa::LaunchShape;

// What a backend is and can do; fixed for its lifetime.
struct Capabilities {
  std::string backend;             // "cpu"
  std::string device;              // "x86-64-v4, 2 threads"
  std::string level;               // native code it takes ("x86-64-v4"); empty: none
  bool host_memory = false;        // addresses are the host's: zero-copy views work
  unsigned threads = 1;            // that take part in one launch
  uint64_t max_blocks = 0;         // of a grid, all axes together
  uint64_t max_block_threads = 0;  // of a block, all axes together
  uint64_t max_shared_bytes = 0;   // of a block: the declared arrays and the launch's bytes
  uint64_t max_buffer_bytes = 0;
};

// How long an allocation will live. Short-lived memory comes from a pool of slots first.
enum class Lifetime : uint8_t { lasting, short_lived };

// Bytes on a backend, owned and given back on destruction, or borrowed (Backend::borrow).
// 64-byte aligned when owned; uninitialised. Zero bytes is a valid size (address may be null).
class Memory {
 public:
  Memory() = default;
  ~Memory() { reset(); }
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    if (this != &other) {
      reset();
      swap(other);
    }
    return *this;
  }

  void* address() const { return address_; }
  uint64_t size() const { return size_; }
  Backend* backend() const { return backend_; }
  void reset();

 private:
  friend class Backend;
  Memory(Backend* backend, void* address, uint64_t size, uint64_t tag)
      : backend_(backend), address_(address), size_(size), tag_(tag) {}
  void swap(Memory& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
    std::swap(tag_, other.tag_);
  }

  static constexpr uint64_t kBorrowed = ~uint64_t{0};
  Backend* backend_ = nullptr;
  void* address_ = nullptr;
  uint64_t size_ = 0;
  uint64_t tag_ = kBorrowed;  // the backend's own: where it came from
};

struct MemoryStatistics {
  uint64_t live_bytes = 0;  // asked for and not given back
  uint64_t pool_slots = 0;  // in the pool of short-lived buffers
  uint64_t pool_slots_used = 0;
  uint64_t pool_hits = 0;  // short-lived allocations served by the pool
  uint64_t direct = 0;     // allocations served by the system
};

// Writes a word of a launch or call that is about to be read. Compilers like to merge such stores
// into vectors, from which a read of one word comes several nanoseconds later.
inline void put_word(uint64_t& to, uint64_t word) { __atomic_store_n(&to, word, __ATOMIC_RELAXED); }
inline void put_word(uint64_t& to, const void* address) {
  put_word(to, reinterpret_cast<uintptr_t>(address));
}

// What a direct launch reads, one a thread and made once: a launch writes only what differs.
//
// The words, the sizes and the address of the words are one cache line: each line more that a
// launch touches can push nine of the caller's out of the first cache, when its data just fill it.
struct alignas(64) DirectLaunch {
  static constexpr size_t kMaxWords = 8;

  uint32_t trap = isa::kTrapNone;
  alignas(32) uint64_t words[kMaxWords] = {};  // a launch's are the last ones
  isa::NativeLaunch launch = {.grid = {1, 1, 1},
                              .block = {1, 1, 1},
                              .parameters = nullptr,
                              .lengths = nullptr,
                              .shared_bytes = 0,
                              .trap = nullptr};

  // The calling thread's, for a launch of `count` words.
  static DirectLaunch& mine(size_t count) {
    // A few bytes in every thread's static block: found without a call from a shared library too.
    [[gnu::tls_model("initial-exec")]] static thread_local constinit DirectLaunch own;
    if (!own.launch.parameters) [[unlikely]]
      own.launch.trap = &own.trap;
    own.launch.parameters = own.words + (kMaxWords - count);
    return own;
  }
  // The first of `count` words.
  uint64_t* words_of(size_t count) { return words + (kMaxWords - count); }
};
static_assert(offsetof(DirectLaunch, launch) + offsetof(isa::NativeLaunch, lengths) == 128);

// The shortest way to run a program: native code that needs no scratch and does not ask for
// lengths, called on the calling thread. Only backends of host memory have it.
struct DirectEntry {
  isa::NativeEntry entry = nullptr;
  uint64_t most_threads = 0;    // launches of more are better shared out; 0: see direct_block.h
  const void* words = nullptr;  // the function of the words (isa/native_abi.h), if there is one

  // Shorter still, where `words` is there: as many words as the program has parameters. The bound
  // among them is at most most_threads.
  template <typename... Words>
  void run_words(Words... all) const {
    reinterpret_cast<void (*)(Words...)>(const_cast<void*>(words))(all...);
  }

  // Runs `threads` threads along x, at most most_threads, on the words of `direct`. Returns the
  // trap that the program met, if `may_trap` says that it has instructions that do.
  uint32_t run(DirectLaunch& direct, uint64_t threads, bool may_trap) const {
    // Code that needs no scratch never looks at it; one static line saves aligning the stack.
    alignas(64) static std::byte scratch[64];
    direct.launch.block[0] = static_cast<uint32_t>(threads);
    entry(&direct.launch, 0, 1, scratch);
    if (!may_trap || direct.trap == isa::kTrapNone) [[likely]]
      return isa::kTrapNone;
    return std::exchange(direct.trap, isa::kTrapNone);
  }
};

// A program made ready by Backend::load.
class Kernel {
 public:
  explicit Kernel(isa::Program program);
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  const isa::Program& program() const { return program_; }
  // The level of the native code it runs by; empty when it is interpreted.
  virtual std::string_view level() const { return {}; }
  // Threads a block may have in launch_checked(), where it pays to give an element-wise program
  // more than the ISA's limit: on the CPU a block is a loop.
  virtual uint64_t widest_block() const { return isa::kMaxBlockThreads; }

  // See DirectEntry; empty where there is none.
  const DirectEntry& direct() const { return direct_; }
  // A trap code of native code as an error that names the program.
  Status trapped(uint32_t trap) const;

  // Worked out once, for the checks of a launch.
  const AccessBounds& bounds() const { return bounds_; }
  uint64_t shared_bytes() const { return shared_bytes_; }  // of the arrays of fixed length
  bool has_open_shared() const { return open_shared_size_ != 0; }
  uint64_t open_shared_size() const { return open_shared_size_; }  // bytes of one element

 protected:
  DirectEntry direct_;  // set by the backend, if at all, before the kernel is shared

 private:
  isa::Program program_;
  AccessBounds bounds_;
  uint64_t shared_bytes_ = 0;
  uint64_t open_shared_size_ = 0;
};

// A launch whose arguments were checked once. Replacing an argument checks only what can differ.
// run() allocates nothing; it may be called any number of times.
class PreparedLaunch {
 public:
  // One a parameter, as isa::NativeLaunch takes them.
  using Words = std::vector<uint64_t>;

  virtual ~PreparedLaunch() = default;
  PreparedLaunch(const PreparedLaunch&) = delete;
  PreparedLaunch& operator=(const PreparedLaunch&) = delete;

  // Another array of the same element type; one that may be written where the program writes.
  // Refused when misaligned or shorter than this grid is known to access.
  Status set_array(uint32_t parameter, const void* address, uint64_t length) {
    if (parameter >= slots_.size() || !slots_[parameter].takes(address, length))
      return bad_array(parameter, address, length);
    words_[parameter] = reinterpret_cast<uintptr_t>(address);
    lengths_[parameter] = length;
    return {};
  }
  // Another value; T must be the parameter's type exactly.
  template <typename T>
  Status set_scalar(uint32_t parameter, T value) {
    if (parameter >= slots_.size() || slots_[parameter].is_array ||
        slots_[parameter].type != dtype_of<T>())
      return bad_scalar(parameter, dtype_of<T>());
    if (slots_[parameter].bounds_accesses)
      return set_bounding_scalar(parameter, scalar_bits(value));
    words_[parameter] = scalar_bits(value);
    return {};
  }
  virtual Status run() = 0;

 protected:
  PreparedLaunch(const Kernel& kernel, const LaunchShape& shape, Words words, Words lengths);

  const Kernel& kernel_;
  const LaunchShape shape_;
  Words words_, lengths_;

 private:
  struct Slot {
    bool is_array;
    bool bounds_accesses;  // a scalar that decides how long arrays must be
    DType type;
    uint64_t alignment_mask;
    uint64_t least_length;

    bool takes(const void* address, uint64_t length) const {
      return is_array && (reinterpret_cast<uintptr_t>(address) & alignment_mask) == 0 &&
             length >= least_length && (address != nullptr || length == 0);
    }
  };
  void update_lengths();
  Status set_bounding_scalar(uint32_t parameter, uint64_t bits);
  Status bad_array(uint32_t parameter, const void* address, uint64_t length) const;
  Status bad_scalar(uint32_t parameter, DType given) const;

  std::vector<Slot> slots_;
  Words needed_;
};

// A kernel that comes with the backend: whole-tensor work such as a matrix product. Called by name
// with arguments checked against its parameters like a program's.
struct Builtin {
  std::string_view name;
  std::span<const isa::Parameter> parameters;
  std::string_view meaning;
  // Checks what the parameters alone cannot say (that arrays are long enough); may be null.
  // Words and lengths are laid out as in isa::NativeLaunch.
  Status (*check)(const uint64_t* words, const uint64_t* lengths) = nullptr;
  // The backend's own entry.
  void (*entry)() = nullptr;
};

class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const Capabilities& capabilities() const { return capabilities_; }

  // --- Memory -----------------------------------------------------------------------------------
  // resource_exhausted beyond max_buffer_bytes or when there is no memory; never for want of a run
  // of free slots in the pool.
  Result<Memory> allocate(uint64_t bytes, Lifetime lifetime = Lifetime::lasting);
  // Memory somebody else owns and keeps until the result is gone (DLPack, a mapped file).
  Memory borrow(void* address, uint64_t bytes) { return {this, address, bytes, Memory::kBorrowed}; }
  // Copies; ranges are checked. `from` and `to` of copy() may overlap.
  Status write(const Memory& to, uint64_t offset, std::span<const std::byte> from);
  Status read(const Memory& from, uint64_t offset, std::span<std::byte> to);
  Status copy(const Memory& to, uint64_t to_offset, const Memory& from, uint64_t from_offset,
              uint64_t bytes);
  // Waits for queued work.
  virtual Status synchronize() { return {}; }
  virtual MemoryStatistics memory_statistics() const = 0;

  // --- Programs ---------------------------------------------------------------------------------
  // Verifies the program, then takes the best of `native` that this device runs (the caller vouches
  // for the code). Refuses native code of another ABI version.
  Result<std::unique_ptr<Kernel>> load(isa::Program program,
                                       std::span<const isa::NativeCode> native = {});
  // Checks, then runs. An argument with a name must name its parameter; without names the order
  // counts. A trap of the program is ErrorCode::trap; what it wrote until then stays written.
  Status launch(const Kernel& kernel, const LaunchShape& shape,
                std::span<const Argument> arguments);
  // The same checks, done once; see PreparedLaunch. The kernel must outlive the result.
  Result<std::unique_ptr<PreparedLaunch>> prepare(const Kernel& kernel, const LaunchShape& shape,
                                                  std::span<const Argument> arguments);
  // For callers inside Hologram whose own checks imply all of launch()'s: one word and one length a
  // parameter, as in isa::NativeLaunch. Runs at once.
  Status launch_checked(const Kernel& kernel, const LaunchShape& shape, const uint64_t* words,
                        const uint64_t* lengths) {
    return do_launch(kernel, shape, words, lengths);
  }

  // --- Built-in kernels -------------------------------------------------------------------------
  // Sorted by name.
  virtual std::span<const Builtin> builtins() const = 0;
  // Null when there is none of this name.
  const Builtin* find_builtin(std::string_view name) const;
  Status call(const Builtin& builtin, std::span<const Argument> arguments);
  Status call(std::string_view name, std::span<const Argument> arguments);
  // As launch_checked.
  Status call_checked(const Builtin& builtin, const uint64_t* words, const uint64_t* lengths) {
    return do_call(builtin, words, lengths);
  }

 protected:
  explicit Backend(Capabilities capabilities) : capabilities_(std::move(capabilities)) {}

  // What an implementation needs of an allocation: the address, and 64 bits it gets back.
  struct Block {
    void* address = nullptr;
    uint64_t tag = 0;
  };
  virtual Result<Block> do_allocate(uint64_t bytes, Lifetime lifetime) = 0;
  virtual void do_release(void* address, uint64_t bytes, uint64_t tag) = 0;
  virtual Status do_write(void* to, std::span<const std::byte> from) = 0;
  virtual Status do_read(const void* from, std::span<std::byte> to) = 0;
  virtual Status do_copy(void* to, const void* from, uint64_t bytes) = 0;
  virtual Result<std::unique_ptr<Kernel>> do_load(isa::Program program,
                                                  std::span<const isa::NativeCode> native) = 0;
  virtual Status do_launch(const Kernel& kernel, const LaunchShape& shape, const uint64_t* words,
                           const uint64_t* lengths) = 0;
  virtual Result<std::unique_ptr<PreparedLaunch>> do_prepare(const Kernel& kernel,
                                                             const LaunchShape& shape,
                                                             PreparedLaunch::Words words,
                                                             PreparedLaunch::Words lengths) = 0;
  virtual Status do_call(const Builtin& builtin, const uint64_t* words,
                         const uint64_t* lengths) = 0;

 private:
  friend class Memory;
  Status check_shape(const Kernel& kernel, const LaunchShape& shape) const;

  Capabilities capabilities_;
};

}  // namespace hologram::backends
