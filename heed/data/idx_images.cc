// Folders of IDX files like MNIST's: one file of images and one of labels per part.
#include <algorithm>
#include <cctype>
#include <memory>

#include "heed/data/idx.h"
#include "heed/data/image_sources.h"

namespace heed::detail {
namespace {

const char* prefix_of(DataPart part) { return part == DataPart::train ? "train" : part == DataPart::validation ? "validation" : "t10k"; }

// The file of this part, or an empty path. kind: "images-idx3" or "labels-idx1"
Path file_of(const Path& folder, DataPart part, std::string kind) {
  for (const char separator : {'-', '.'}) {  // some unpackers replace the last dash by a dot
    kind[kind.size() - 5] = separator;
    for (const char* end : {"-ubyte", "-ubyte.gz"}) {
      const Path path = folder / (std::string(prefix_of(part)) + "-" + kind + end);
      if (std::filesystem::exists(path)) return path;
    }
  }
  return {};
}

bool is_fashion(const Path& folder) {
  std::string path = std::filesystem::absolute(folder / ".").lexically_normal().parent_path().filename();
  for (char& letter : path) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return path.find("fashion") != std::string::npos;
}

std::vector<std::string> names_of(const Path& folder) {
  if (std::filesystem::exists(folder / "labels.txt")) return read_names(folder / "labels.txt", 0);
  if (is_fashion(folder)) return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};
  return numbered_names(10);
}

}  // namespace

bool is_idx(const Path& folder) {
  for (const DataPart part : {DataPart::train, DataPart::validation, DataPart::test})
    if (!file_of(folder, part, "images-idx3").empty()) return true;
  return false;
}

ImageData read_idx_images(const Path& folder, DataPart part) {
  ImageData out{.source = folder.string(), .classes = names_of(folder)};
  const Path images = file_of(folder, part, "images-idx3"), labels = file_of(folder, part, "labels-idx1");
  if (images.empty()) return out;
  check<FileError>(!labels.empty(), images.string(), ": found no labels next to it, expected ", prefix_of(part),
                   "-labels-idx1-ubyte or .gz");
  const Tensor pixels = read_idx(images.string()), classes = read_idx(labels.string());
  check<FileError>(pixels.rank() == 3 && pixels.size(1) > 0 && pixels.size(2) > 0, images.string(), ": found the sizes ", pixels.shape(),
                   ", expected (images, rows, columns)");
  check<FileError>(classes.rank() == 1 && classes.size(0) == pixels.size(0), labels.string(), ": found the sizes ", classes.shape(),
                   ", expected (", pixels.size(0), "), as many labels as there are images");
  for (const uint8_t label : classes.to_vector<uint8_t>()) {
    check<FileError>(label < out.classes.size(), labels.string(), ": image ", out.labels.size(), " has label ", int{label},
                     ", expected one below ", out.classes.size(), "; for more classes put their names into labels.txt, one per line");
    out.labels.push_back(label);
  }
  const int64_t count = pixels.size(0), height = pixels.size(1), width = pixels.size(2);
  const auto bytes = std::make_shared<const std::vector<uint8_t>>(pixels.to_vector<uint8_t>());
  out.image = [bytes, count, height, width](int64_t i) {
    check(i >= 0 && i < count, "image: found number ", i, ", expected one below ", count);
    Image image{width, height};
    image.pixels.resize(static_cast<size_t>(3 * width * height));
    const uint8_t* from = bytes->data() + i * width * height;
    for (int64_t pixel = 0; pixel < width * height; ++pixel) std::fill_n(image.pixels.data() + 3 * pixel, 3, from[pixel]);
    return image;
  };
  out.name = [file = images.string()](int64_t i) { return file + ": image " + std::to_string(i); };
  return out;
}

}  // namespace heed::detail
