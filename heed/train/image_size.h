// The model's image size, and how images are resized to it.
#pragma once

#include "heed/data/image_data.h"
#include "heed/train/tasks.h"

namespace heed {

// As chosen by the user. choose_image_size replaces the values with the ones in effect.
struct ImageOptions {
  std::string image = "auto";   // "64", "96x64" (width x height), "auto": from the data, "model": from config.json
  std::string resize = "crop";  // "crop": resize the shorter side, centre crop; "squash"; "pad": black borders; "model": same as `from`
};

void declare(Settings& settings, ImageOptions& options);
// UsageError if the settings contradict from=, whose preprocessor_config.json defines the images.
void check_image_settings(const Settings& settings, const JobOptions& chosen);

// Parses "64" or "96x64"; UsageError otherwise.
ImageSize image_size_in(const std::string& text);
std::string text_of(const ImageSize& size);  // inverse of image_size_in

// Sizes of all images, read from file headers; files without a valid header are skipped.
std::vector<ImageSize> image_sizes(const ImageData& data);
ImageSize median_size(const std::vector<ImageSize>& sizes);  // medians of width and height; sizes must not be empty

// The size for image=auto. If all images have the same size and sides of at most 64 pixels: that size. Other image files: a square with the
// median of the shorter sides, rounded down to a multiple of the patch size, at most 256 patches or the config's size (and at most 224
// pixels). Other data: the config's size.
ImageSize default_image_size(const ImageData& data, const std::vector<ImageSize>& sizes, const Json& config);
ImageSize size_in_config(const Json& config);  // image_size
// For image=model: the config's size, except that small images of one common size are used as they are.
ImageSize model_image_size(const std::vector<ImageSize>& sizes, const Json& config);
void check_patches(const ImageSize& size, const Json& config);  // UsageError if the patch size does not divide it

// Keys of preprocessor_config.json that resize images to this size. resize: "crop", "squash" or "pad". sizes: sizes of the images; a
// non-square crop resizes the shorter side just far enough that every image covers the crop.
Json resize_keys(const ImageSize& size, const std::string& resize, const std::vector<ImageSize>& sizes);

// Chooses the size for the model to train. Writes image_size into its config and the values in effect into the options. config: of the
// preset, or of `from`, which uses its own preprocessor_config.json.
struct ImageInputs {
  Json preprocessing;     // for preprocessor_config.json
  bool complete = false;  // false: image_mean and image_std are still missing
  std::string why = {};   // reason for the size, to show to the user
};
ImageInputs choose_image_size(ImageOptions& options, const JobOptions& chosen, const ImageData& train, Json& config);

// Interpolates the positions of a model that takes any size once, to that of prepared images; otherwise every step would do so.
void fit_positions(Model& model, const Image& prepared);

// image_mean and image_std, measured on about 1000 images.
Json colour_keys(const ImageData& data, int64_t channels);

}  // namespace heed
