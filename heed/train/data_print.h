// What the data of a run were: how many items, of which classes, and checksums, so that a run that goes on can tell whether they changed.
#pragma once

#include <span>
#include <string_view>

#include "heed/data/picture_data.h"
#include "heed/io/json.h"

namespace heed {

// Of one part of the data. Every text that is added counts, with its bytes.
class DataPrint {
 public:
  void add(std::string_view text);
  void next() { ++items_; }  // what was added since then is one item
  Json json() const;         // {"items": 3, "bytes": 120, "checksum": 123456}

 private:
  int64_t items_ = 0, bytes_ = 0;
  unsigned long sum_ = 0;
};

Json print_of(std::span<const std::string> texts);
Json print_of(std::span<const std::vector<std::string>> documents);

// {"items", "classes", "labels", "names", "bytes", "sample"}: of files their names below the data's folder and their sizes; the last is a
// checksum of what is in some of the images.
Json print_of(const PictureData& data);

}  // namespace heed
