#include "heed/cuda/graph.h"

#include "heed/core/check.h"
#include "heed/core/memory.h"
#include "heed/cuda/runtime.h"

namespace heed::cuda {

bool Graph::is_supported(Device device) { return computing_device(device) != kCpu; }

Graph::Graph(Device device, const std::function<void()>& work) : device_(device) {
  check(is_supported(device), "graph: ", name_of(device), " has no CUDA graphs");
  const OnDevice scope(device.index);
  pin_cached_memory(device);
  driver::begin_capture();
  try {
    work();
  } catch (...) {
    if (void* const graph = driver::end_capture()) driver::destroy_graph(graph);
    throw;
  }
  void* const graph = driver::end_capture();
  check(graph != nullptr, "graph: a step that reads results on the host cannot be recorded");
  graph_ = {graph, [index = device.index](void* each) {
              const OnDevice owner(index);
              driver::destroy_graph(each);
            }};
}

void Graph::run() const {
  const OnDevice scope(device_.index);
  driver::run_graph(graph_.get());
}

}  // namespace heed::cuda
