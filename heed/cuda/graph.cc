#include "heed/cuda/graph.h"

#include <vector>

#include "heed/core/check.h"
#include "heed/core/memory.h"
#include "heed/cuda/runtime.h"

namespace heed::cuda {
namespace {

using Sources = std::vector<std::shared_ptr<const void>>;
thread_local Sources* recorded_sources = nullptr;  // of the graph that is being recorded

}  // namespace

bool Graph::is_supported(Device device) { return computing_device(device) != kCpu; }

bool Graph::is_recording() { return recorded_sources != nullptr; }

void Graph::keep(std::shared_ptr<const void> source) { recorded_sources->push_back(std::move(source)); }

Graph::Graph(Device device, const std::function<void()>& work, bool takes_memory) : device_(device) {
  check(is_supported(device), "graph: ", name_of(device), " has no CUDA graphs");
  const OnDevice scope(device.index);
  if (takes_memory) pin_cached_memory(device);
  driver::begin_capture();
  const auto sources = std::make_shared<Sources>();
  recorded_sources = sources.get();
  try {
    work();
    recorded_sources = nullptr;
  } catch (...) {
    recorded_sources = nullptr;
    if (void* const graph = driver::end_capture()) driver::destroy_graph(graph);
    throw;
  }
  void* const graph = driver::end_capture();
  check(graph != nullptr, "graph: a step that reads results on the host cannot be recorded");
  graph_ = {graph, [index = device.index, sources](void* each) {
              const OnDevice owner(index);
              driver::destroy_graph(each);
            }};
}

void Graph::run() const {
  const OnDevice scope(device_.index);
  driver::run_graph(graph_.get());
}

}  // namespace heed::cuda
