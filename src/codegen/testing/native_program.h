// NativeProgram: maps the code of a program and runs it, for tests and benchmarks of this layer.
//
// The real one, with its thread pool and checks, is the CPU backend; this layer does not see it.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "isa/launch.h"
#include "isa/native_abi.h"
#include "isa/native_code.h"
#include "support/result.h"

namespace hologram::codegen::testing {

class NativeProgram {
 public:
  static Result<NativeProgram> load(const isa::NativeCode& code) {
    void* const memory =
        mmap(nullptr, code.code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail(ErrorCode::resource_exhausted, "mmap failed");
    std::memcpy(memory, code.code.data(), code.code.size());
    if (mprotect(memory, code.code.size(), PROT_READ | PROT_EXEC) != 0)
      return fail(ErrorCode::permission_denied, "mprotect failed");
    NativeProgram program;
    program.memory_ = std::shared_ptr<std::byte>(
        static_cast<std::byte*>(memory),
        [size = code.code.size()](std::byte* mapped) { munmap(mapped, size); });
    program.entry_ = reinterpret_cast<isa::NativeEntry>(program.memory_.get() + code.entry_offset);
    if (code.words_offset) program.words_ = program.memory_.get() + code.words_offset;
    program.scratch_ = {.scratch_fixed = code.scratch_fixed,
                        .scratch_per_thread = code.scratch_per_thread};
    return program;
  }

  // A launch with everything it needs, to be run again and again. The program must outlive it.
  class Launch {
   public:
    Launch(const NativeProgram& program, const isa::LaunchShape& shape,
           std::span<const isa::Argument> arguments)
        : entry_(program.entry_) {
      for (const isa::Argument& a : arguments) {
        words_.push_back(a.data ? reinterpret_cast<uint64_t>(a.data) : a.bits);
        lengths_.push_back(a.count);
      }
      blocks_ = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
      const uint64_t bytes =
          program.scratch_.scratch_bytes(shape.block_threads(), shape.shared_bytes);
      scratch_.assign(bytes + 64, std::byte{0xa5});
      aligned_ = scratch_.data();
      size_t space = scratch_.size();
      std::align(64, bytes, aligned_, space);
      launch_ = {.grid = {shape.grid[0], shape.grid[1], shape.grid[2]},
                 .block = {shape.block[0], shape.block[1], shape.block[2]},
                 .parameters = words_.data(),
                 .lengths = lengths_.data(),
                 .shared_bytes = shape.shared_bytes,
                 .trap = nullptr};
    }
    Launch(const Launch&) = delete;

    // Runs blocks [first, last) (all by default) on this thread and returns the TrapCode.
    uint32_t operator()(uint64_t first = 0, uint64_t last = ~uint64_t{0}) const {
      uint32_t trap = 0;
      isa::NativeLaunch launch = launch_;
      launch.trap = &trap;
      entry_(&launch, first, std::min(last, blocks_), aligned_);
      return trap;
    }

   private:
    isa::NativeEntry entry_;
    std::vector<uint64_t> words_, lengths_;
    std::vector<std::byte> scratch_;
    void* aligned_ = nullptr;
    uint64_t blocks_ = 0;
    isa::NativeLaunch launch_;
  };

  Launch prepare(const isa::LaunchShape& shape, const std::vector<isa::Argument>& arguments) const {
    return Launch(*this, shape, arguments);
  }
  uint32_t run(const isa::LaunchShape& shape, std::span<const isa::Argument> arguments,
               uint64_t first = 0, uint64_t last = ~uint64_t{0}) const {
    return Launch(*this, shape, arguments)(first, last);
  }

  // The function of the words; null where the code has none.
  const void* words() const { return words_; }

 private:
  std::shared_ptr<std::byte> memory_;
  isa::NativeEntry entry_ = nullptr;
  const void* words_ = nullptr;
  isa::NativeCode scratch_;
};

}  // namespace hologram::codegen::testing
