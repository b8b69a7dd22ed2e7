// Animated PNG: browsers play it, other programs show the first image.
#pragma once

#include <string>

#include "heed/io/image.h"

namespace heed {

class AnimatedPng {
 public:
  explicit AnimatedPng(int64_t frames);  // total number

  // Appends a frame. All frames have the same size; only the changed rectangle is stored.
  void add(const Image& image, double seconds);
  std::string bytes() const;  // after the last frame

 private:
  int64_t frames_, added_ = 0;
  uint32_t chunks_ = 0;  // sequence number of the next fcTL or fdAT chunk
  Image last_ = {};
  std::string out_ = {};
};

}  // namespace heed
