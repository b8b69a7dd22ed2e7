// A film as one file: animated PNG, which browsers play and of which every other program shows the first picture.
#pragma once

#include <string>

#include "heed/io/picture.h"

namespace heed {

class Film {
 public:
  explicit Film(int64_t frames);  // how many there will be

  // One more, shown for so long. All have the size of the first; of the others only what changes is kept.
  void add(const Picture& picture, double seconds);
  std::string bytes() const;  // when all of them are there

 private:
  int64_t frames_, added_ = 0;
  uint32_t chunks_ = 0;  // numbered ones so far
  Picture last_ = {};
  std::string out_ = {};
};

}  // namespace heed
