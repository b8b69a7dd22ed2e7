// Launching kernels: the right function, counted work, workspace, dry runs, and errors for devices.
#include "heed/core/kernel.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "heed/core/copy_kernels.h"
#include "heed/ops/norm.h"
#include "tests/expect_error.h"
#include "tests/structure/source.h"

namespace heed::test {
namespace {

struct Probe {
  int* calls;
  void* workspace = nullptr;

  int64_t multiply_adds() const { return 12; }
  int64_t workspace_bytes(Device) const { return 256; }
};

constexpr Kernel<Probe> probe{"probe",
                              [](const Probe& args) {
                                static_cast<char*>(args.workspace)[255] = 1;
                                *args.calls += 1;
                              },
                              [](const Probe& args) { *args.calls += 100; }};

TEST(Kernel, runs_on_its_device_and_counts_its_work) {
  int calls = 0;
  const WorkCount work;
  launch(probe, kCpu, {.calls = &calls});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(work.multiply_adds(), 12);
}

TEST(Kernel, counts_memory_and_work_without_running_in_a_dry_run) {
  int calls = 0;
  const WorkCount work;
  const DryRun dry;
  launch(probe, kCpu, {.calls = &calls});
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(work.multiply_adds(), 12);
  EXPECT_EQ(dry.peak(), 256);
}

TEST(Kernel, cuda_functions_fail_in_builds_without_cuda) {
#ifdef HEED_WITH_CUDA
  GTEST_SKIP() << "this build has CUDA";
#endif
  expect_error<Error>([] { cuda::norm_forward({}); }, "norm_forward: this build of heed has no CUDA");
  expect_error<Error>([] { cuda::fill_elements({}); }, "fill_elements: this build of heed has no CUDA");
}

// cmake/kernels.cmake parses declarations of kernels by line: one in another form would get no CUDA function.
TEST(Kernel, declarations_have_the_form_that_cmake_parses) {
  const std::filesystem::path root = HEED_SOURCE_DIR;
  const std::regex form("HEED_KERNEL\\([a-z0-9_]+, [A-Za-z0-9]+\\);");
  int found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "heed")) {
    if (entry.path().extension() != ".h" || entry.path().filename() == "kernel.h") continue;
    std::istringstream lines(read_source(std::filesystem::relative(entry.path(), root).string()));
    for (std::string line; std::getline(lines, line);) {
      if (line.find("HEED_KERNEL(") == std::string::npos) continue;
      ++found;
      EXPECT_TRUE(std::regex_match(line, form)) << entry.path() << ": " << line;
    }
  }
  EXPECT_GE(found, 20);
}

TEST(Kernel, finds_the_common_device_of_tensors) {
  const Tensor x = Tensor::ones({2}, kCpu), none;
  EXPECT_EQ(common_device("add", {&x, &none}), kCpu);
  EXPECT_EQ(common_device("add", {&none}), kCpu);
  EXPECT_EQ(x.to(kCpu).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_TRUE(x.to(kCpu).shares_data_with(x));
  EXPECT_EQ(name_of(Device{.kind = Device::Kind::cuda, .index = 1}), "cuda:1");
}

}  // namespace
}  // namespace heed::test
