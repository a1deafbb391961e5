// What a launch and an op must not cost: memory. Every allocation of the process is counted.
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/ops/ops.h"
#include "runtime/testing.h"

#if defined(__GLIBC__) && !defined(HOLOGRAM_SANITIZED)

namespace {
thread_local bool counting = false;
thread_local int counted = 0;
}  // namespace

// Standing in for the C library's, which everything else allocates by.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t size) {
  counted += counting;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  counted += counting;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  counted += counting;
  return __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  counted += counting;
  return __libc_memalign(alignment, size);
}
}

namespace hologram::runtime {
namespace {

using testing::executor;
using testing::value_of;

template <typename F>
int allocations(F f) {
  counted = 0;
  counting = true;
  f();
  counting = false;
  return counted;
}

TEST(LaunchCost, TheCounterCounts) {
  EXPECT_GE(allocations([] { delete new int(1); }), 0);
  EXPECT_GE(allocations([] {
              std::vector<int> v(1000);
              EXPECT_EQ(v[999], 0);
            }),
            1);
}

TEST(LaunchCost, LaunchesAndOpsAllocateNothing) {
  const size_t n = 256 * 1024;  // large enough for all threads
  const Tensor a = testing::make(std::vector<float>(n, 1), {static_cast<int64_t>(n)});
  const Tensor b = testing::make(std::vector<float>(n, 2), {static_cast<int64_t>(n)});
  const Tensor out = value_of(executor().empty(DType::f32, a.dims()));
  const Tensor one = value_of(executor().empty(DType::f32, {}));
  const KernelRef kernel = value_of(executor().standard_kernel("vector_add"));
  if (kernel->level().empty()) GTEST_SKIP() << "the interpreter allocates its lanes";
  const auto argument = [](const Tensor& t, bool writable) {
    return Argument::array_of(DType::f32, t.address(), static_cast<uint64_t>(t.element_count()),
                              writable);
  };
  const Argument arguments[] = {argument(a, false), argument(b, false), argument(out, true),
                                Argument::scalar(static_cast<uint32_t>(n))};
  const LaunchShape block{{1, 1, 1}, {1024, 1, 1}}, grid{{256, 1, 1}, {1024, 1, 1}};
  auto prepared = value_of(executor().backend().prepare(*kernel, block, arguments));

  const auto everything = [&] {
    EXPECT_TRUE(executor().launch(*kernel, block, std::span(arguments)));
    EXPECT_TRUE(executor().launch(*kernel, grid, std::span(arguments)));
    EXPECT_TRUE(prepared->set_array(0, b.address(), n));
    EXPECT_TRUE(prepared->run());
    EXPECT_TRUE(ops::add(executor(), a, b, out));
    EXPECT_TRUE(ops::relu(executor(), a, out));
    EXPECT_TRUE(ops::axpy(executor(), 2.f, a, b, out));
    EXPECT_TRUE(ops::sum(executor(), a, {}, one));
    EXPECT_TRUE(ops::dot(executor(), a, b, one));
  };
  everything();  // the first use loads kernels and grows the thread's scratch
  EXPECT_EQ(allocations(everything), 0);
  EXPECT_EQ(value_of(out.to_vector<float>())[n - 1], 4);
}

}  // namespace
}  // namespace hologram::runtime

#endif
