#include "compiler/count_allocations.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> count{0};
}

// Every form that the program uses is replaced: memory of the library's own forms may not be freed
// by these. The algorithms' temporary buffers come from the one that does not throw.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(size ? size : 1);
}
void* operator new(size_t size) {
  if (void* p = ::operator new(size, std::nothrow)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

// Takes the C library's place in this program.
extern "C" void* aligned_alloc(size_t alignment, size_t size) {
  ++count;
  void* p = nullptr;
  // LLVM asks for less than posix_memalign takes.
  return posix_memalign(&p, std::max(alignment, sizeof(void*)), size) == 0 ? p : nullptr;
}

namespace hologram::compiler {

int64_t allocations() { return count; }

}  // namespace hologram::compiler
