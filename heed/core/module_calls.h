// The calls of modules in the order in which they end, with the shapes of their tensors.
#pragma once

#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/module_work.h"

namespace HEED_API heed {

// One call of a module: shapes of what it read, inputs before weights, and of its output.
struct ModuleCall {
  std::string module;
  std::vector<Shape> read;
  Shape output;
  DType dtype;  // of the output
};

// While one of these lives, the module calls of this thread are recorded, by the newest only.
class ModuleCalls {
 public:
  ModuleCalls();
  ~ModuleCalls();
  ModuleCalls(const ModuleCalls&) = delete;
  ModuleCalls& operator=(const ModuleCalls&) = delete;

  const std::vector<ModuleCall>& list() const { return list_; }
  void add(ModuleCall call) { list_.push_back(std::move(call)); }

 private:
  ModuleCount count_ = {};  // modules name themselves only while something counts
  std::vector<ModuleCall> list_ = {};
  ModuleCalls* before_;
};

}  // namespace heed
