// From pictures to what a model takes for pixel_values, as preprocessor_config.json says: resize, crop, scale, normalise.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>

#include "heed/core/tensor.h"
#include "heed/io/resize.h"

namespace heed {

class Config;
class Model;

class PictureReader {
 public:
  // Of a model's folder. Without preprocessor_config.json: the image_size of config.json, bilinear, (x / 255 - 0.5) / 0.5.
  explicit PictureReader(const Path& folder);
  // By the keys of a preprocessor_config.json; `model_type` ("vit", "deit") has the defaults where the file names no class.
  explicit PictureReader(const Config& config, const std::string& model_type = "vit");

  Picture prepared(const Picture& picture) const;              // resized and cropped: what the model sees
  Tensor operator()(const Picture& picture) const;             // (3, height, width) f32
  Tensor operator()(std::span<const Picture> pictures) const;  // (B, 3, height, width); all must come out alike
  Tensor normalized(std::span<const Picture> seen) const;      // the same of pictures that are prepared already
  std::string description() const;                             // what prepared() does, for people

 private:
  struct Size {
    int64_t height = 0, width = 0;
    int64_t shorter = 0;   // side, where the other one follows from the picture; 0: height and width count
    bool fits_in = false;  // height and width are the most, and the picture keeps its shape
    bool operator==(const Size&) const = default;
  };
  Size resized(const Picture& picture) const;
  Size outcome(const Picture& picture) const { return crops_ ? crop_ : resized(picture); }
  void write(const Picture& seen, float* out) const;  // out: 3 x height x width
  static Tensor filled(int64_t B, const Size& size, const std::function<void(int64_t b, float* out)>& fill);
  static Size size_in(const Config& config, const char* key, Size otherwise, bool square);

  bool resizes_ = true, crops_ = false;
  Size size_, crop_;
  Resample filter_ = Resample::bilinear;
  std::array<std::array<float, 256>, 3> values_ = {};  // of every shade in every channel
};

// An error about the folder's files unless its model takes images as they were made by them. pixels: (..., C, height, width)
void check_image_size(const Model& model, const Path& folder, const Tensor& pixels);

}  // namespace heed
