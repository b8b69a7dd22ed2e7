// How much of the work each module does: layers name themselves while they run, and their gradients count for them too.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>

#include "heed/core/api.h"
#include "heed/core/tensor.h"
#include "heed/core/work_count.h"

namespace HEED_API heed {

using ModuleName = std::shared_ptr<const std::string>;  // null: the module around it
inline ModuleName module_name(std::string name) { return std::make_shared<const std::string>(std::move(name)); }

struct ModuleWork {
  int64_t multiply_adds = 0;  // as the ops count them
  int64_t moved_bytes = 0;    // inputs and weights read once, outputs written once
  int64_t output_bytes = 0;
};

// While one of these lives, the ops that this thread runs are counted by module. Other threads should run none meanwhile.
class ModuleCount {
 public:
  ModuleCount();
  ~ModuleCount();
  ModuleCount(const ModuleCount&) = delete;
  ModuleCount& operator=(const ModuleCount&) = delete;

  const std::map<std::string, ModuleWork>& modules();  // by name; "": outside of modules

 private:
  friend class ModuleScope;
  void enter(const ModuleName& module);  // what was done until now is the previous module's

  const WorkCount count_ = {};
  int64_t assigned_ = 0;  // multiply-adds
  ModuleName current_ = {};
  std::map<std::string, ModuleWork> modules_ = {};
  ModuleCount* before_;
};

// Ops that run while an object of this class exists count for the module, and so do their gradients. If nothing is being counted, it
// costs one check of a pointer.
class ModuleScope {
 public:
  explicit ModuleScope(const ModuleName& module);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

  // Counts the bytes of a call, and returns its output. Undefined tensors are ignored.
  Tensor call(std::initializer_list<const Tensor*> read, Tensor output) const;

  static ModuleName current();  // null if nothing is being counted

 private:
  ModuleCount* count_;  // null: nothing is being counted
  ModuleName before_ = {};
};

}  // namespace heed
