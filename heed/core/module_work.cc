#include "heed/core/module_work.h"

#include "heed/core/check.h"
#include "heed/core/module_calls.h"

namespace heed {
namespace {

constexpr int64_t kOverflow = -1;  // as the number of multiply-adds

thread_local ModuleCount* newest_module_count = nullptr;
thread_local ModuleCalls* newest_module_calls = nullptr;

std::string text_of_module(const ModuleName& name) { return name ? *name : std::string(); }

}  // namespace

ModuleCount::ModuleCount() : before_(newest_module_count) { newest_module_count = this; }
ModuleCount::~ModuleCount() { newest_module_count = before_; }

void ModuleCount::enter(const ModuleName& module) {
  const int64_t all = count_.multiply_adds();
  if (all < assigned_) assigned_ = kOverflow;  // no error yet: destructors get here
  if (assigned_ != kOverflow && all != assigned_) {
    modules_[text_of_module(current_)].multiply_adds += all - assigned_;
    assigned_ = all;
  }
  current_ = module;
}

const std::map<std::string, ModuleWork>& ModuleCount::modules() {
  enter(current_);
  check(assigned_ != kOverflow, "cost: the count of multiply-adds overflows");
  return modules_;
}

ModuleCalls::ModuleCalls() : before_(newest_module_calls) { newest_module_calls = this; }
ModuleCalls::~ModuleCalls() { newest_module_calls = before_; }

ModuleScope::ModuleScope(const ModuleName& module) : count_(module ? newest_module_count : nullptr) {
  if (!count_) return;
  before_ = count_->current_;
  count_->enter(module);
}

ModuleScope::~ModuleScope() {
  if (count_) count_->enter(before_);
}

Tensor ModuleScope::call(std::initializer_list<const Tensor*> read, Tensor output) const {
  if (!count_) return output;
  const auto bytes = [](const Tensor& x) { return x.defined() ? x.count() * static_cast<int64_t>(bytes_of(x.dtype())) : 0; };
  ModuleWork& work = count_->modules_[text_of_module(count_->current_)];
  for (const Tensor* each : read) work.moved_bytes += bytes(*each);
  work.moved_bytes += bytes(output);
  work.output_bytes += bytes(output);
  if (newest_module_calls) {
    ModuleCall recorded{.module = text_of_module(count_->current_), .read = {}, .output = output.shape(), .dtype = output.dtype()};
    for (const Tensor* each : read)
      if (each->defined()) recorded.read.push_back(each->shape());
    newest_module_calls->add(std::move(recorded));
  }
  return output;
}

ModuleName ModuleScope::current() { return newest_module_count ? newest_module_count->current_ : nullptr; }

}  // namespace heed
