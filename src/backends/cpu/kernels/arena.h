// Containers in a kernel's scratch memory: List<T>, Map<K, V>, Set<T>, Text. A kernel that runs
// again allocates nothing for them. They die with the kernel; nothing is given back before. On
// other threads than the one that runs the kernel, and outside of kernels, they are on the heap.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hologram::kernels {

class KernelMemory;

// Of one run of a kernel (run_kernel makes it). For one thread.
class Arena {
 public:
  // Containers made from now on are in this memory, until the arena ends.
  explicit Arena(KernelMemory& memory) : memory_(memory), around_(current_) { current_ = this; }
  ~Arena() { current_ = around_; }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  static Arena* current() { return current_; }
  void* allocate(size_t bytes, size_t alignment);

 private:
  static thread_local Arena* current_;

  KernelMemory& memory_;
  Arena* const around_;
  std::byte* at_ = nullptr;
  size_t left_ = 0, chunk_ = 512;
};

template <typename T>
class ArenaAllocator {
 public:
  using value_type = T;

  ArenaAllocator() : arena_(Arena::current()) {}
  template <typename U>
  ArenaAllocator(const ArenaAllocator<U>& other) : arena_(other.arena()) {}

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    return static_cast<T*>(arena_ ? arena_->allocate(bytes, alignof(T)) : ::operator new(bytes));
  }
  void deallocate(T* memory, size_t) {
    if (!arena_) ::operator delete(memory);
  }
  Arena* arena() const { return arena_; }
  template <typename U>
  bool operator==(const ArenaAllocator<U>& other) const {
    return arena_ == other.arena();
  }

 private:
  Arena* arena_;
};

template <typename T>
using List = std::vector<T, ArenaAllocator<T>>;
template <typename K, typename V>
using Map = std::map<K, V, std::less<>, ArenaAllocator<std::pair<const K, V>>>;
template <typename T>
using Set = std::set<T, std::less<>, ArenaAllocator<T>>;
using Text = std::basic_string<char, std::char_traits<char>, ArenaAllocator<char>>;

}  // namespace hologram::kernels
