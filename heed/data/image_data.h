// Labelled images for training and evaluation, independent of the file format.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/image.h"

namespace HEED_API heed {

// A set of labelled images. The functions read one image when they are called.
struct ImageData {
  std::string source = {};                               // for error messages
  std::vector<std::string> classes = {};                 // class names
  std::vector<int64_t> labels = {};                      // index into classes, per image
  std::function<Image(int64_t i)> image = {};            // decodes image i; thread-safe
  std::function<std::string(int64_t i)> name = nullptr;  // location of image i: a file, or a file and an index
  bool files = false;                                    // every image is its own file, slow to decode and possibly damaged
  std::function<Path(int64_t i)> file = {};              // if files: the path, not necessarily UTF-8
  std::function<ImageSize(int64_t i)> size = {};         // if files: from the header only
  std::vector<std::string> notes = {};                   // messages about skipped files

  int64_t count() const { return std::ssize(labels); }  // images
};

// The parts of a data set.
enum class DataPart { train, validation, test };

// where: a folder with CIFAR-10's or CIFAR-100's binary files, with IDX files like MNIST's (plain or .gz), or with one folder of image
// files per class, optionally below train/, validation/ (or val/) and test/; or "shapes" (shapes.h). A missing part has no images;
// folders without parts are train. Errors are FileErrors.
ImageData read_images(const std::string& where, DataPart part);

ImageData chosen(ImageData data, std::vector<int64_t> which);  // the subset with these indices, in this order

}  // namespace heed
