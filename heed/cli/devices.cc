// heed devices: the CPU and the GPUs, with their measured peaks.
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "heed/cli/command.h"
#include "heed/cli/print_json.h"
#include "heed/core/isa.h"
#include "heed/core/parallel.h"
#include "heed/core/peak.h"
#include "heed/cuda/runtime.h"
#include "heed/ops/ops.h"

namespace heed::cli {
namespace {

struct GpuRow {
  std::string name, description;
  double memory_gib, tflops, gigabytes_per_second;  // tflops: of a large product in bf16
};

// The fastest of several runs, after one that is not counted.
template <class Work>
double seconds_of(int device, const Work& work) {
  double best = 0;
  for (int run = 0; run < 6; ++run) {
    cuda::synchronize(device);
    const auto start = std::chrono::steady_clock::now();
    work();
    cuda::synchronize(device);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (run > 0) best = run == 1 ? seconds : std::min(best, seconds);
  }
  return best;
}

GpuRow measure_gpu(int index) {
  const NoGrad no_grad;
  const cuda::DeviceInfo info = cuda::device_info(index);
  const Device device{Device::Kind::cuda, static_cast<int8_t>(index)};
  const int64_t size = info.major == 0 ? 256 : 8192;  // an emulated device is a CPU
  Rng rng(1);
  const Tensor a = cast(random_normal({size, size}, 0, 1, rng, device), DType::bf16),
               b = cast(random_normal({size, size}, 0, 1, rng, device), DType::bf16);
  const double product = seconds_of(index, [&] { matmul(a, b); });
  const Tensor from = Tensor::zeros({size * size * 8}, device);
  const double copy = seconds_of(index, [&] { scale(from, 1); });
  const auto n = static_cast<double>(size);
  std::ostringstream about;
  about << info.name << ", " << info.multiprocessors << " multiprocessors, compute capability " << info.major << '.' << info.minor;
  return {.name = name_of(device),
          .description = about.str(),
          .memory_gib = static_cast<double>(info.memory) / (1 << 30),
          .tflops = 2 * n * n * n / product * 1e-12,
          .gigabytes_per_second = 2 * n * n * 8 * sizeof(float) / copy * 1e-9};
}

void list_devices(bool json) {
  const double flops = peak_flops() * 1e-12;
  const std::string threads = std::to_string(thread_count()) + (thread_count() == 1 ? " thread" : " threads");
  if (json)
    print_json_line({{"name", "cpu"}, {"description", instruction_set() + ", " + threads}, {"f32_tflops", flops}});
  else
    std::cout << "cpu     " << instruction_set() << ", " << threads << ", " << std::fixed << std::setprecision(2) << flops
              << " TFLOP/s (f32)" << std::endl;
  const int gpus = cuda::device_count();
  for (int index = 0; index < gpus; ++index) {
    const GpuRow row = measure_gpu(index);
    if (json)
      print_json_line({{"name", row.name},
                       {"description", row.description},
                       {"memory_gib", row.memory_gib},
                       {"bf16_tflops", row.tflops},
                       {"gigabytes_per_second", row.gigabytes_per_second}});
    else
      std::cout << row.name << "  " << row.description << ", " << std::fixed << std::setprecision(0) << row.memory_gib << " GiB, "
                << row.tflops << " TFLOP/s (bf16), " << row.gigabytes_per_second << " GB/s" << std::endl;
  }
  if (!json && gpus == 0) std::cout << "no GPU: none is installed, its driver is missing, or heed was built without CUDA\n";
}

const Command devices_command("devices", "List the CPU and the GPUs with their measured peaks", [](Flags& flags) {
  const auto json = std::make_shared<bool>(false);
  flags.flag("--json", *json, "One JSON object per device");
  flags.footer(
      "TFLOP/s are those of multiply-adds in registers on the CPU and of a large product on a GPU; GB/s of a copy, bytes read and\n"
      "written.\n\nExamples:\n  heed devices\n  heed devices --json");
  return [json] { list_devices(*json); };
});

}  // namespace
}  // namespace heed::cli
