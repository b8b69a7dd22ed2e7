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

  // Records what `work` launches; it does not run. Memory that it takes is used by every run. An error of `work` passes through.
  Graph(Device device, const std::function<void()>& work);
  void run() const;

 private:
  Device device_;
  std::shared_ptr<void> graph_;
};

}  // namespace cuda
}  // namespace heed
