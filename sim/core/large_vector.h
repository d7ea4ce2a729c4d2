// A vector for arrays of many megabytes that are written once, from front to back. It leaves new
// elements uninitialised and asks the system for large pages. First touches would otherwise cost
// more than the computation that fills them.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace pipesim {

template <class T>
class LargeAllocator {
 public:
  using value_type = T;

  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>& /*other*/) {}  // NOLINT: allocators convert implicitly

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kLargePage) return static_cast<T*>(::operator new(bytes));
    void* memory = ::operator new(bytes, std::align_val_t(kLargePage));
    // Only a hint: without large pages the memory is the same.
    (void)::madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (count * sizeof(T) < kLargePage) {
      ::operator delete(memory);
    } else {
      ::operator delete(memory, std::align_val_t(kLargePage));
    }
  }

  // `resize(n)` leaves the elements as they are.
  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }

  friend bool operator==(const LargeAllocator&, const LargeAllocator&) { return true; }

 private:
  static constexpr std::size_t kLargePage = std::size_t{2} << 20;
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace pipesim
