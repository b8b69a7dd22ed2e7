// Work that consists of many independent parts, such as the batches of an evaluation, split across processes.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/dist/group.h"

namespace HEED_API heed {

// Results of parts of an earlier process that was stopped, and the place for those of this one. While one exists, split_work() uses it.
class FinishedParts {
 public:
  FinishedParts();
  virtual ~FinishedParts();
  FinishedParts(const FinishedParts&) = delete;
  FinishedParts& operator=(const FinishedParts&) = delete;

  static FinishedParts* current();  // null: there is none
  // The same in all processes: the result of the next part of an earlier process, if there is one left.
  virtual std::optional<std::string> next() = 0;
  virtual void add(const std::string& result) = 0;
  // An error if the value differs from that of the earlier process. what: "the command", "the input"
  virtual void check_same(const std::string& what, const std::string& value) = 0;
};

// Parts 0 to count - 1 are computed by one process each; take() gets all results in order, in every process. An interrupt of one process
// (core/interrupt.h) interrupts all.
void split_work(Group& group, int64_t count, const std::function<std::string(int64_t part)>& compute,
                const std::function<void(int64_t part, const std::string& result)>& take);

// Numbers as bytes, to send them.
template <class T>
std::string bytes_of_numbers(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}
template <class T>
std::vector<T> numbers_in(const std::string& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

// Tensors by name, as bytes; numbers are sent as f32 and arrive on the CPU.
std::string bytes_of_tensors(const std::map<std::string, Tensor>& tensors);
std::map<std::string, Tensor> tensors_in(const std::string& bytes);

bool any_of(Group& group, bool value);  // whether it is true in any process

}  // namespace heed
