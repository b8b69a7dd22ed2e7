#include "heed/cuda/driver.h"

#include <cuda_profiler_api.h>

#include <array>
#include <mutex>

#include "heed/cuda/launch.cuh"

namespace heed::cuda {
namespace {

constexpr int kMaxDevices = 16;
thread_local int device_in_use = -1;

// Made at the first use of a device and never destroyed: tensors may outlive every static.
struct DeviceState {
  std::once_flag once;
  cudaStream_t stream = nullptr;
  int multiprocessors = 0, capability = 0;
};

DeviceState& state() {
  static auto* const states = new std::array<DeviceState, kMaxDevices>;
  if (device_in_use < 0) driver::use_device(0);
  DeviceState& s = (*states)[static_cast<size_t>(device_in_use)];
  std::call_once(s.once, [&] {
    int major = 0, minor = 0;
    check_cuda(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking), "stream");
    check_cuda(cudaDeviceGetAttribute(&s.multiprocessors, cudaDevAttrMultiProcessorCount, device_in_use), "properties");
    check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device_in_use), "properties");
    check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device_in_use), "properties");
    s.capability = 10 * major + minor;
  });
  return s;
}

}  // namespace

cudaStream_t stream() { return state().stream; }
int multiprocessor_count() { return state().multiprocessors; }
int compute_capability() { return state().capability; }

namespace driver {

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

DeviceInfo device_info(int index) {
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, index), "properties");
  size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "memory");
  return {.name = properties.name,
          .memory = static_cast<int64_t>(total),
          .free_memory = static_cast<int64_t>(free),
          .multiprocessors = properties.multiProcessorCount,
          .major = properties.major,
          .minor = properties.minor};
}

void use_device(int index) {
  if (index == device_in_use) return;
  const int count = device_count();
  check(index >= 0 && index < count && index < kMaxDevices, "device cuda:", index, ": this machine has ", count,
        count == 1 ? " CUDA device" : " CUDA devices");
  check_cuda(cudaSetDevice(index), "choosing the device");
  device_in_use = index;
}

void synchronize() { check_cuda(cudaStreamSynchronize(stream()), "kernel"); }

std::byte* allocate(int64_t bytes) {
  void* block = nullptr;
  const cudaError_t status = cudaMalloc(&block, static_cast<size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // the next launch must not report it again
    return nullptr;
  }
  check_cuda(status, "memory");
  return static_cast<std::byte*>(block);
}

void release(std::byte* block) {
  synchronize();
  check_cuda(cudaFree(block), "memory");
}

// Relaxed: the recorded work may allocate memory.
void begin_capture() { check_cuda(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed), "capture"); }

void* end_capture() {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  const bool recorded =
      cudaStreamEndCapture(stream(), &graph) == cudaSuccess && graph && cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess;
  if (graph) cudaGraphDestroy(graph);
  cudaGetLastError();  // the next launch must not report it again
  return recorded ? executable : nullptr;
}

void run_graph(void* graph) { check_cuda(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream()), "graph"); }
void destroy_graph(void* graph) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); }

void set_profiling(bool on) { check_cuda(on ? cudaProfilerStart() : cudaProfilerStop(), "profiler"); }

}  // namespace driver
}  // namespace heed::cuda
