// The kernels that a function launches, recorded once as a CUDA graph and then started together.
#pragma once

#include <functional>
#include <memory>

#include "heed/core/api.h"
#include "heed/core/device.h"

namespace HEED_API heed {
namespace cuda {

class Graph {
 public:
  static bool is_supported(Device device);
  static bool is_recording();  // whether this thread is recording one
  // For what recorded work reads in every run, such as host memory that it copies: it lives as long as the graph that is being recorded.
  static void keep(std::shared_ptr<const void> source);

  // Records what `work` launches; it does not run. An error of `work` passes through. takes_memory: every run uses what `work` took from
  // the pool, which from now on keeps its memory.
  Graph(Device device, const std::function<void()>& work, bool takes_memory = true);
  void run() const;

 private:
  Device device_;
  std::shared_ptr<void> graph_;
};

}  // namespace cuda
}  // namespace heed
