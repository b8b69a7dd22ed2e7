// TensorBoard event files: records of protocol buffers (event.proto, summary.proto of TensorFlow), each with its length and a CRC-32C.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "heed/core/api.h"
#include "heed/io/image.h"

namespace HEED_API heed {

class EventFile {
 public:
  explicit EventFile(const Path& folder);  // appends to the newest event file of the folder, or creates events.out.tfevents.<time>.heed
  ~EventFile();

  void scalar(const std::string& tag, int64_t step, double value);
  void histogram(const std::string& tag, int64_t step, std::span<const float> values);
  void image(const std::string& tag, int64_t step, const Image& image);
  void text(const std::string& tag, int64_t step, const std::string& markdown);

  int64_t size();                   // in bytes; syncs the file first
  void truncate_to(int64_t bytes);  // drops every record after that size

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heed
