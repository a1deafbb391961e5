#include "backends/cpu/kernels/arena.h"

#include <algorithm>
#include <cstdint>
#include <new>

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

thread_local Arena* Arena::current_ = nullptr;

void* Arena::allocate(size_t bytes, size_t alignment) {
  size_t skip = -reinterpret_cast<uintptr_t>(at_) & (alignment - 1);
  if (left_ < bytes || left_ - bytes < skip) {
    chunk_ = std::max(2 * chunk_, bytes);
    const auto fresh = memory_.scratch(chunk_);
    // Memory is out, and containers have no way to say it but the heap's.
    if (!fresh) return ::operator new(bytes);
    at_ = *fresh;
    left_ = chunk_;
    skip = 0;
  }
  std::byte* result = at_ + skip;
  at_ = result + bytes;
  left_ -= skip + bytes;
  return result;
}

}  // namespace hologram::kernels
