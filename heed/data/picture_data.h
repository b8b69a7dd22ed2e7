// Labelled pictures to learn from, whatever files they lie in.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/io/picture.h"

namespace heed {

struct PictureData {
  std::string source = {};                               // for messages
  std::vector<std::string> classes = {};                 // their names
  std::vector<int64_t> labels = {};                      // of each picture: a place in classes
  std::function<Picture(int64_t i)> picture = {};        // decoded anew each time; may be called from many threads
  std::function<std::string(int64_t i)> name = nullptr;  // where picture i lies: a file, or a file and a number
  bool files = false;                                    // every picture is an image file, slow to decode and perhaps damaged
  std::function<Path(int64_t i)> file = {};              // of files: the path, whose bytes need not be UTF-8
  std::function<PictureSize(int64_t i)> size = {};       // of files: from the header alone
  std::vector<std::string> notes = {};                   // files that were passed over, for people

  int64_t count() const { return std::ssize(labels); }
};

enum class DataPart { train, validation, test };

// where: a folder with CIFAR-10's or CIFAR-100's binary files, with IDX files as MNIST's (plain or .gz), or with a folder of image
// files per class, which may lie below train/, validation/ (or val/) and test/; or "shapes", made by rule (shapes.h).
// A part that is not there has no pictures; folders without parts are all train. Everything wrong is a FileError.
PictureData read_pictures(const std::string& where, DataPart part);

PictureData chosen(PictureData data, std::vector<int64_t> which);  // those, in that order

}  // namespace heed
