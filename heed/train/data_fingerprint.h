// Fingerprint of a run's data: item counts, classes and checksums. A resumed run uses it to detect that the data changed.
#pragma once

#include <span>
#include <string_view>

#include "heed/data/image_data.h"
#include "heed/io/json.h"

namespace heed {

// One part of the data. Covers the bytes and the boundaries of every added text.
class DataFingerprint {
 public:
  void add(std::string_view text);
  void next() { ++items_; }  // ends an item: everything added since the last call
  Json json() const;         // {"items": 3, "bytes": 120, "checksum": 123456}

 private:
  int64_t items_ = 0, bytes_ = 0;
  unsigned long sum_ = 0;
};

Json fingerprint_of(std::span<const std::string> texts);
Json fingerprint_of(std::span<const std::vector<std::string>> documents);

// {"items", "classes", "labels", "names", "bytes", "sample"}: names (class/file) and sizes for data in files; "sample" is a checksum of the
// contents of 32 images.
Json fingerprint_of(const ImageData& data);

}  // namespace heed
