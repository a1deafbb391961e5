#include "backends/cpu/code_map.h"

#if defined(__unix__)
#include <sys/mman.h>

#include <cerrno>
#endif
#include <cstring>

namespace hologram::backends {

#if defined(__unix__)

Result<CodeMap> CodeMap::map(std::span<const std::byte> code) {
  if (code.empty()) return fail(ErrorCode::invalid_argument, "native code of no bytes");
  CodeMap result;
  void* memory =
      mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(ErrorCode::resource_exhausted, "cannot map {} bytes for native code: {}",
                code.size(), std::strerror(errno));
  result.data_ = static_cast<std::byte*>(memory);
  result.size_ = code.size();
  std::memcpy(memory, code.data(), code.size());
  if (mprotect(memory, code.size(), PROT_READ | PROT_EXEC) != 0)
    return fail(ErrorCode::permission_denied, "the system does not allow native code to run: {}",
                std::strerror(errno));
  return result;
}

CodeMap::~CodeMap() {
  if (data_) munmap(data_, size_);
}

#else

Result<CodeMap> CodeMap::map(std::span<const std::byte>) {
  return fail(ErrorCode::unsupported, "this system cannot map native code");
}

CodeMap::~CodeMap() = default;

#endif

}  // namespace hologram::backends
