#include "heed/models/image_processor.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/io/paths.h"
#include "heed/models/architecture.h"
#include "heed/models/model.h"

namespace heed {
namespace {

constexpr const char* kFile = "preprocessor_config.json";
constexpr int64_t kLeastUncropped = 384;  // ConvNeXT's processor crops smaller images

// Defaults of image_mean and image_std.
constexpr std::array<float, 3> kHalf{0.5F, 0.5F, 0.5F};
constexpr std::array<float, 3> kClipMean{0.48145466F, 0.4578275F, 0.40821073F}, kClipDeviation{0.26862954F, 0.26130258F, 0.27577711F};

// Larger pixel values could overflow in the model.
constexpr double kLargestShade = 1e6;

double rescale_factor(const Config& config) {
  return config.has("rescale_factor") ? config.at("rescale_factor").number(-kLargestShade, kLargestShade) : 1.0 / 255;
}

std::vector<float> per_channel(const Config& config, const char* key, int64_t channels, const std::array<float, 3>& fallback) {
  std::vector<float> out(fallback.begin(), fallback.begin() + channels);
  if (!config.has(key)) return out;
  const JsonReader found = config.at(key);
  const bool list = found.json().is_array(), same = list && found.size() == 3 && found.json()[0] == found.json()[1] &&
                                                    found.json()[0] == found.json()[2];  // also accepted for grey
  if (list && found.size() != out.size() && !(channels == 1 && same))
    config.refuse(key, channels == 1 ? "1 number" : "3 numbers, for red, green and blue");
  for (size_t c = 0; c < out.size(); ++c) out[c] = static_cast<float>((list ? found[c] : found).number(-kLargestShade, kLargestShade));
  return out;
}

// An error for steps that heed does not support.
void refuse_other_steps(const Config& config) {
  config.only("do_pad", false);
  config.only("data_format", "channels_first");
  for (const auto& [key, value] : config.json().items()) {
    if (!key.starts_with("do_") || value != true) continue;
    bool known = false;
    for (const char* step : {"do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb"}) known = known || key == step;
    if (!known) config.refuse(key, "a step that heed supports: resize, center_crop, rescale, normalize, convert_rgb");
  }
}

bool names_architecture(const Config& config) { return !config.architecture().empty() || config.has("model_type"); }

Config image_config_of(const Config& config) { return names_architecture(config) ? image_config(architecture_of(config), config) : config; }

Config config_of(const Path& folder) {
  if (const std::optional<Config> found = image_processor_config(folder)) return *found;
  const std::string source = (folder / "config.json").string();
  const Config model(read_json(source), source);
  const auto [height, width] = image_config_of(model).sides("image_size", 224);
  return {Json{{"size", {{"height", height}, {"width", width}}}, {"crop_size", {{"height", height}, {"width", width}}}}, source};
}

ModelImages images_in(const Path& folder) {
  const Path path = folder / "config.json";
  if (!path_exists(path)) return {};
  ModelImages out = model_images(Config(read_json(path), path.string()));
  if (!image_processor_config(folder)) out.processor = ModelImages().processor;  // the size is that of config.json
  return out;
}

}  // namespace

std::optional<Config> image_processor_config(const Path& folder) {
  if (const Path path = folder / "processor_config.json"; path_exists(path))
    if (const Config config(read_json(path), path.string()); config.has("image_processor")) return config.below("image_processor");
  if (path_exists(folder / kFile)) return Config(read_json(folder / kFile), (folder / kFile).string());
  return {};
}

std::string image_processor_class(const Config& keys, const ModelImages& images) {
  const char* const key = keys.has("image_processor_type") ? "image_processor_type" : "feature_extractor_type";
  const std::string name = keys.string(key, "");
  if (name.empty()) return images.processor;
  for (const char* each : {"ViT", "DeiT", "CLIP", "Bit", "ConvNext"})
    for (const char* kind : {"ImageProcessor", "ImageProcessorFast", "ImageProcessorPil", "FeatureExtractor"})
      if (name == std::string(each) + kind) return each;
  keys.refuse(key, "a ViT, DeiT, CLIP, Bit or ConvNext image processor, for example ViTImageProcessor");
}

ModelImages model_images(const Config& config) {
  const int64_t channels = image_config_of(config).size("num_channels", 3);
  if (channels != 1 && channels != 3) config.refuse("num_channels", "3, for colours, or 1, for grey");
  return {names_architecture(config) ? architecture_of(config).family->image_processor : ModelImages().processor, channels};
}

ImageProcessor::Size ImageProcessor::size_in(const Config& config, const char* key, Size fallback, bool square) {
  if (!config.has(key)) return fallback;
  const Json& found = config.json()[key];
  Size out;
  if (found.is_object()) {
    const Config inner = config.below(key);
    const auto numbers = std::count_if(found.begin(), found.end(), [](const Json& each) { return !each.is_null(); });
    if (inner.has("height") && inner.has("width") && numbers == 2) {
      out = {.height = inner.size("height", 0), .width = inner.size("width", 0)};
    } else if (inner.has("shortest_edge") && numbers == 1) {
      out.shorter = inner.size("shortest_edge", 0);
    } else if (inner.has("max_height") && inner.has("max_width") && numbers == 2) {
      out = {.height = inner.size("max_height", 0), .width = inner.size("max_width", 0), .fits_in = true};
    } else {
      config.refuse(key, "height and width, max_height and max_width, or shortest_edge alone");
    }
  } else {
    const std::vector<int64_t> sides = config.sizes(key, {});
    if (sides.size() > 2) config.refuse(key, "a height and a width");
    out = {.height = sides.front(), .width = sides.back()};
    if (sides.size() == 1 && !square) out = {.shorter = sides.front()};
  }
  if (std::max(out.height, out.shorter) > kMaxImagePixels / std::max(out.width, out.shorter))
    config.refuse(key, "at most " + std::to_string(kMaxImagePixels) + " pixels");
  return out;
}

ImageProcessor::ImageProcessor(const Config& config, const ModelImages& images) : channels_(images.channels) {
  const std::string family = image_processor_class(config, images);
  const bool deit = family == "DeiT", clip = family == "CLIP" || family == "Bit", convnext = family == "ConvNext", crops = deit || clip;
  refuse_other_steps(config);
  resizes_ = config.flag("do_resize", true);
  crops_ = config.flag("do_center_crop", crops);
  config.flag("do_convert_rgb", true);  // images are always RGB when they are read
  const int64_t side = deit ? 256 : convnext ? kLeastUncropped : 224;
  const bool shorter = clip || convnext;
  size_ = size_in(config, "size", shorter ? Size{.shorter = side} : Size{.height = side, .width = side},
                  config.flag("default_to_square", !shorter));
  crop_ = size_in(config, "crop_size", crops ? Size{.height = 224, .width = 224} : Size{}, true);
  if (convnext && resizes_)
    use_crop_share(config);
  else if (crops_ && (crop_.height == 0 || crop_.fits_in))
    config.refuse("crop_size", "a height and a width, as do_center_crop is true");
  const int64_t filter = config.size("resample", crops || convnext ? 3 : 2, 0);
  if (filter > 5) config.refuse("resample", "the number of a filter, from 0 to 5");
  filter_ = static_cast<Resample>(filter);

  const bool rescales = config.flag("do_rescale", true), normalizes = config.flag("do_normalize", true);
  const double factor = rescale_factor(config);
  const std::vector<float> mean = per_channel(config, "image_mean", channels_, clip ? kClipMean : kHalf),
                           deviation = per_channel(config, "image_std", channels_, clip ? kClipDeviation : kHalf);
  for (size_t c = 0; c < mean.size(); ++c) {
    if (normalizes && deviation[c] == 0) config.refuse("image_std", "numbers other than 0");
    for (size_t shade = 0; shade < 256; ++shade) {
      const auto plain = static_cast<double>(shade);
      const auto x = static_cast<float>(rescales ? plain * factor : plain);
      values_[c][shade] = normalizes ? (x - mean[c]) / deviation[c] : x;
      if (!(std::abs(values_[c][shade]) <= kLargestShade))
        config.refuse(normalizes ? "image_std" : "rescale_factor", "one that results in pixels from -1e6 to 1e6");
    }
  }
}

void ImageProcessor::use_crop_share(const Config& config) {
  config.only("do_center_crop", false);
  if (size_.shorter == 0 && size_.height != size_.width) config.refuse("size", "shortest_edge");
  const int64_t side = std::max(size_.shorter, size_.height);
  const double share = config.has("crop_pct") ? config.at("crop_pct").number(0.01, 1) : 224.0 / 256;
  if (side >= kLeastUncropped) {
    size_ = {.height = side, .width = side};
    return;
  }
  size_ = {.shorter = static_cast<int64_t>(static_cast<double>(side) / share)};
  crop_ = {.height = side, .width = side};
  crops_ = true;
}

ImageProcessor::ImageProcessor(const Path& folder) : ImageProcessor(config_of(folder), images_in(folder)) {}

ImageProcessor::Size ImageProcessor::resized(const Image& image) const {
  check(image.width > 0 && image.height > 0, "images: found ", image.width, " x ", image.height, " pixels, expected some");
  Size out = resizes_ ? size_ : Size{.height = image.height, .width = image.width};
  if (out.fits_in) {
    const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
    const double scale = std::min(static_cast<double>(out.height) / height, static_cast<double>(out.width) / width);
    const auto scaled = [&](double side) { return std::max<int64_t>(static_cast<int64_t>(side * scale), 1); };
    out = {.height = scaled(height), .width = scaled(width)};
  }
  if (out.shorter > 0) {
    const int64_t shorter = std::min(image.height, image.width), longer = std::max(image.height, image.width);
    const auto other = static_cast<int64_t>(static_cast<double>(out.shorter) * static_cast<double>(longer) / static_cast<double>(shorter));
    check<FileError>(other <= kMaxImagePixels / out.shorter, "images: ", image.width, " x ", image.height, " pixels would become ",
                     out.shorter, " x ", other, ", expected at most ", kMaxImagePixels, " of them");
    out = image.width <= image.height ? Size{.height = other, .width = out.shorter} : Size{.height = out.shorter, .width = other};
  }
  return out;
}

Image ImageProcessor::prepared(const Image& image) const {
  const Size size = resized(image);
  Image out = resize(image, size.width, size.height, filter_);
  return crops_ ? center_crop(out, crop_.width, crop_.height) : out;
}

void ImageProcessor::write(const Image& image, float* out) const {
  const int64_t count = image.width * image.height;
  const uint8_t* pixel = image.pixels.data();
  for (int64_t i = 0; i < count; ++i, pixel += 3) {
    if (channels_ == 1)
      out[i] = values_[0][grey_of(pixel)];
    else
      for (size_t c = 0; c < 3; ++c) out[static_cast<int64_t>(c) * count + i] = values_[c][pixel[c]];
  }
}

Tensor ImageProcessor::operator()(std::span<const Image> images) const {
  check(!images.empty(), "images: found none, expected at least one");
  const Size size = prepared_size(images[0]);
  for (size_t b = 1; b < images.size(); ++b) {
    const Size other = prepared_size(images[b]);
    check(other == size, "images: number ", b, " is resized to ", other.width, " x ", other.height, " pixels, number 0 to ", size.width,
          " x ", size.height, "; process them one by one");
  }
  return filled(std::ssize(images), size, [&](int64_t b, float* out) { write(prepared(images[static_cast<size_t>(b)]), out); });
}

Tensor ImageProcessor::normalized(std::span<const Image> images) const {
  check(!images.empty(), "images: found none, expected at least one");
  for (const Image& each : images)
    check(each.width == images[0].width && each.height == images[0].height, "images: found ", each.width, " x ", each.height, " and ",
          images[0].width, " x ", images[0].height, " pixels in one batch, expected prepared images of one size");
  return filled(std::ssize(images), {.height = images[0].height, .width = images[0].width},
                [&](int64_t b, float* out) { write(images[static_cast<size_t>(b)], out); });
}

Tensor ImageProcessor::filled(int64_t B, const Size& size, const std::function<void(int64_t b, float* out)>& fill) const {
  const int64_t each = channels_ * size.height * size.width;
  const Shape shape{B, channels_, size.height, size.width};
  const std::shared_ptr<float[]> values(new float[static_cast<size_t>(heed::count(shape))]);
  const auto one = [&](int64_t b) { fill(b, values.get() + b * each); };
  if (B == 1) {
    one(0);  // not as a task: nested tasks run serially
  } else {
    parallel_tasks(B, one);
  }
  return Tensor::borrow(values, reinterpret_cast<std::byte*>(values.get()), shape, DType::f32);
}

Tensor ImageProcessor::byte_values() const {
  return Tensor::from(std::span<const float>(values_[0].data(), static_cast<size_t>(channels_) * 256), {channels_, 256}, kCpu);
}

std::string ImageProcessor::description() const {
  const auto pixels = [](const Size& size) { return std::to_string(size.width) + " x " + std::to_string(size.height); };
  std::string out;
  if (resizes_ && size_.shorter > 0)
    out = "shorter side resized to " + std::to_string(size_.shorter);
  else if (resizes_)
    out = (size_.fits_in ? "resized to fit into " : "resized to ") + pixels(size_);
  if (!crops_) return out.empty() ? "in their original size" : out;
  if (!out.empty()) out += ", then ";
  return out + (resizes_ && size_.fits_in ? "padded with black to " : "the centre of ") + pixels(crop_);
}

Tensor ImageProcessor::operator()(const Image& image) const {
  const Tensor out = (*this)(std::span(&image, 1));
  return out.view({channels_, out.size(2), out.size(3)}, {out.size(2) * out.size(3), out.size(3), 1});
}

void check_image_size(const Model& model, const Path& folder, const Tensor& pixels) {
  const Config config = image_config(model.traits(), Config(model.config(), (folder / "config.json").string()));
  const int64_t channels = config.size("num_channels", 3), height = pixels.size(-2), width = pixels.size(-1);
  if (pixels.size(-3) != channels) config.refuse("num_channels", std::to_string(pixels.size(-3)) + ", as in images");
  if (!model.family().positions || model.family().other_sizes) return;  // takes any size
  const std::array<int64_t, 2> image = config.sides("image_size", 224);
  const std::optional<Config> keys = image_processor_config(folder);
  check<FileError>(image[0] == height && image[1] == width, keys ? keys->source() : config.source(), ": makes images of ", width, " x ",
                   height, " pixels, the model takes ", image[1], " x ", image[0], " (image_size of config.json); they must be equal");
}

}  // namespace heed
