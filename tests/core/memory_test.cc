// The memory pools of devices.
#include "heed/core/memory.h"

#include <gtest/gtest.h>

#include "heed/cuda/emulation.h"
#include "heed/cuda/runtime.h"

namespace heed::test {
namespace {

// After a CUDA graph was recorded, cached blocks stay in the pool. Work of other shapes, such as an evaluation, must still get memory.
TEST(MemoryPool, uses_a_larger_pinned_block_if_there_is_no_other_memory) {
  if (!cuda::emulation::is_on()) GTEST_SKIP() << "needs an emulated GPU, whose memory is not used";
  const Device gpu{Device::Kind::cuda, 0};
  release_cached_memory(gpu);
  const int64_t tenth = (cuda::device_info(gpu.index).memory - memory_use(gpu).in_use) / 10;
  const std::byte* large = nullptr;
  {
    const Storage block(7 * tenth, gpu);
    large = block.data();
  }
  pin_cached_memory(gpu);
  const MemoryUse before = memory_use(gpu);
  {
    const Storage smaller(4 * tenth, gpu);
    EXPECT_EQ(smaller.data(), large);
    EXPECT_EQ(memory_use(gpu).cached, 0);
  }
  EXPECT_EQ(memory_use(gpu).cached, before.cached);
  EXPECT_EQ(memory_use(gpu).in_use, before.in_use);
}

}  // namespace
}  // namespace heed::test
