// Dry runs: memory is counted and not used.
#include "heed/core/dry_run.h"

#include <gtest/gtest.h>

#include "heed/core/memory.h"
#include "heed/ops/ops.h"

namespace heed::test {
namespace {

TEST(DryRun, counts_memory_without_using_it) {
  const int64_t before = memory_use(kCpu).in_use;
  DryRun dry;
  {
    const Tensor a = Tensor::empty({1 << 18, 1 << 18}, kCpu);  // 256 GiB; the thread sanitizer leaves addresses for 1.5 TiB
    EXPECT_EQ(dry.in_use(), int64_t{256} << 30);
    const Tensor b = add(a, a);
    EXPECT_EQ(dry.in_use(), int64_t{512} << 30);
  }
  EXPECT_EQ(dry.in_use(), 0);
  EXPECT_EQ(dry.peak(), int64_t{512} << 30);
  dry.reset_peak();
  EXPECT_EQ(dry.peak(), 0);
  EXPECT_EQ(memory_use(kCpu).in_use, before);
}

TEST(DryRun, rounds_sizes_like_the_memory_pool) {
  for (const int64_t count : {1, 100, 1000, 12345, 3'000'001}) {
    const int64_t before = memory_use(kCpu).in_use;
    const Tensor real = Tensor::empty({count}, kCpu);
    const int64_t taken = memory_use(kCpu).in_use - before;
    const DryRun dry;
    const Tensor other = Tensor::empty({count}, kCpu);
    EXPECT_EQ(dry.in_use(), taken);
  }
}

TEST(DryRun, has_the_peak_memory_of_a_real_run) {
  const auto work = [] {
    Tensor x = Tensor::ones({300, 200}, kCpu), w = Tensor::ones({400, 200}, kCpu);
    w.require_grad();
    backward(sum(softmax(linear(x, w, {}, Activation::gelu))));
  };
  const int64_t before = memory_use(kCpu).in_use;
  reset_peak_memory(kCpu);
  work();
  const int64_t peak = memory_use(kCpu).peak - before;
  const DryRun dry;
  work();
  EXPECT_EQ(dry.peak(), peak);
}

TEST(DryRun, launches_no_kernel) {
  const DryRun dry;
  EXPECT_EQ((Tensor::ones({3}, kCpu) + Tensor::full({3}, 2, kCpu)).to_vector<float>(), (std::vector<float>{0, 0, 0}));
}

TEST(DryRun, can_be_nested_and_tensors_can_outlive_it) {
  Tensor kept;
  {
    const DryRun outer;
    kept = Tensor::empty({1000}, kCpu);
    {
      const DryRun inner;
      const Tensor other = Tensor::empty({1000}, kCpu);
      EXPECT_GT(inner.in_use(), 0);
      EXPECT_EQ(outer.in_use(), inner.in_use());
    }
    EXPECT_EQ(DryRun::newest(), &outer);
  }
  EXPECT_EQ(DryRun::newest(), nullptr);
  EXPECT_EQ(kept.to_vector<float>(), std::vector<float>(1000, 0));
}

}  // namespace
}  // namespace heed::test
