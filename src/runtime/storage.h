// Storage: memory on a backend, shared by the buffer and the tensors that look at it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "backends/backend.h"

namespace hologram::runtime {

class Storage {
 public:
  using Release = void (*)(void* owner);

  // Owned memory.
  Storage(std::shared_ptr<backends::Backend> backend, backends::Memory memory)
      : backend_(std::move(backend)), memory_(std::move(memory)) {}
  // Somebody else's: release(owner) is called when the last user is gone.
  Storage(std::shared_ptr<backends::Backend> backend, void* address, uint64_t bytes, bool writable,
          void* owner, Release release)
      : backend_(std::move(backend)),
        memory_(backend_->borrow(address, bytes)),
        writable_(writable),
        owner_(owner),
        release_(release) {}
  ~Storage() {
    if (release_) release_(owner_);
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  const std::shared_ptr<backends::Backend>& backend() const { return backend_; }
  const backends::Memory& memory() const { return memory_; }
  std::byte* address() const { return static_cast<std::byte*>(memory_.address()); }
  uint64_t size() const { return memory_.size(); }
  bool writable() const { return writable_; }
  bool host_memory() const { return backend_->capabilities().host_memory; }

 private:
  // The backend is declared first, so it goes last.
  std::shared_ptr<backends::Backend> backend_;
  backends::Memory memory_;
  bool writable_ = true;
  void* owner_ = nullptr;
  Release release_ = nullptr;
};

}  // namespace hologram::runtime
