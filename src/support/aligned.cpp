#include "support/aligned.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstdlib>

namespace hologram {

Result<AlignedBytes> AlignedBytes::allocate(size_t size) {
  AlignedBytes memory;
  if (size == 0) return memory;
  // Blocks past the size of a huge page are aligned to one: fewer TLB misses on streaming work.
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t alignment = size >= kHugePage ? kHugePage : kAlignment;
  if (size > SIZE_MAX - alignment)
    return fail(ErrorCode::resource_exhausted,
                "cannot allocate {} bytes: more than memory can address", size);
  const size_t rounded = align_up(size, alignment);
  memory.data_ = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  if (!memory.data_)
    return fail(ErrorCode::resource_exhausted, "cannot allocate {} bytes: out of memory", size);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Advice only: where huge pages are off the memory works all the same.
  if (alignment == kHugePage) (void)madvise(memory.data_, rounded, MADV_HUGEPAGE);
#endif
  memory.size_ = size;
  return memory;
}

AlignedBytes::~AlignedBytes() { std::free(data_); }

}  // namespace hologram
