// Event files as TensorBoard reads them: records of protocol buffers (event.proto, summary.proto of TensorFlow), each between its
// length and a CRC-32C of it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "heed/io/picture.h"

namespace heed {

class EventFile {
 public:
  explicit EventFile(const Path& folder);  // goes on with the one that lies there, or begins events.out.tfevents.<time>.heed
  ~EventFile();

  void scalar(const std::string& tag, int64_t step, double value);
  void histogram(const std::string& tag, int64_t step, std::span<const float> values);
  void image(const std::string& tag, int64_t step, const Picture& picture);
  void text(const std::string& tag, int64_t step, const std::string& markdown);

  int64_t size();              // bytes so far, all of them on the disk
  void cut_to(int64_t bytes);  // back to that size

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heed
