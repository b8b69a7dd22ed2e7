// From images to pixel_values according to preprocessor_config.json: resize, crop, rescale, normalize.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "heed/core/api.h"
#include "heed/core/tensor.h"
#include "heed/io/resize.h"

namespace HEED_API heed {

class Config;
class Model;

// The parts of a model's config that image preprocessing depends on.
struct ModelImages {
  std::string processor = "ViT";  // the image processor whose defaults apply if preprocessor_config.json names none
  int64_t channels = 3;           // or 1: grey
};
// config: of the model
ModelImages model_images(const Config& config);

// The keys of a folder's image processor: of preprocessor_config.json, or of "image_processor" in processor_config.json, which
// `transformers` 5 writes for CLIP. None: the folder has neither.
std::optional<Config> image_processor_config(const Path& folder);
// The class that such keys name, without "ImageProcessor": ViT, DeiT, CLIP, Bit or ConvNext. If they name none: images.processor.
std::string image_processor_class(const Config& keys, const ModelImages& images);

// Makes pixel_values of images, equal to the image processors of `transformers`.
class ImageProcessor {
 public:
  struct Size {
    int64_t height = 0, width = 0;
    int64_t shorter = 0;   // length of the shorter side, keeping the aspect ratio; 0: use height and width
    bool fits_in = false;  // height and width are maxima, keeping the aspect ratio
    bool operator==(const Size&) const = default;
  };

  // From a model folder. Without image_processor_config(): the image_size of config.json, bilinear, (x / 255 - 0.5) / 0.5.
  explicit ImageProcessor(const Path& folder);
  // From the keys of a preprocessor_config.json.
  explicit ImageProcessor(const Config& config, const ModelImages& images = {});

  Image prepared(const Image& image) const;  // resized and cropped
  Size prepared_size(const Image& image) const { return crops_ ? crop_ : resized(image); }
  Tensor operator()(const Image& image) const;             // (C, height, width) f32
  Tensor operator()(std::span<const Image> images) const;  // (B, C, height, width); all must have the same size when prepared
  Tensor normalized(std::span<const Image> images) const;  // the same for images that are already prepared
  Tensor byte_values() const;                              // (C, 256) f32: the normalized value of every byte in every channel
  std::string description() const;                         // of prepared(), for messages

 private:
  Size resized(const Image& image) const;
  void write(const Image& image, float* out) const;  // out: C x height x width
  Tensor filled(int64_t B, const Size& size, const std::function<void(int64_t b, float* out)>& fill) const;
  void use_crop_share(const Config& config);  // ConvNeXT's crop_pct: the resized image is larger by this share, and its centre is used
  static Size size_in(const Config& config, const char* key, Size fallback, bool square);

  int64_t channels_;
  bool resizes_ = true, crops_ = false;
  Size size_, crop_;
  Resample filter_ = Resample::bilinear;
  std::array<std::array<float, 256>, 3> values_ = {};  // normalized value of every byte in every channel
};

// An error unless the image processor of the folder makes images of the size that its model takes. pixels: (..., C, height, width)
void check_image_size(const Model& model, const Path& folder, const Tensor& pixels);

}  // namespace heed
