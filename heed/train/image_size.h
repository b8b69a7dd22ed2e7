// How large the images are that a model learns from, and how images of other sizes become that large.
#pragma once

#include "heed/data/picture_data.h"
#include "heed/train/tasks.h"

namespace heed {

// What a person chose. The values in force take their place once the data are known.
struct ImageOptions {
  std::string image = "auto";   // "64", "96x64" (width x height), "auto": from the data, "model": as config.json says
  std::string resize = "crop";  // "crop": shorter side, then the centre; "squash"; "pad": the whole image on black; "model": as `from` does
};

// "64" or "96x64"; a UsageError where it is neither.
PictureSize image_size_in(const std::string& text);
std::string text_of(const PictureSize& size);  // the way back

// Widths and heights of all images, from the headers of files; files without a valid header are left out.
std::vector<PictureSize> image_sizes(const PictureData& data);
PictureSize median_size(const std::vector<PictureSize>& sizes);  // of widths and of heights; there must be some

// The size for image=auto. All images alike, with sides of at most 64 pixels: theirs. Other image files: a square as large as the median of
// their shorter sides, a multiple of the patch size, with at most 256 patches or what the config has (and at most 224 pixels). Other
// data: the config's.
PictureSize default_image_size(const PictureData& data, const std::vector<PictureSize>& sizes, const Json& config);
PictureSize size_in_config(const Json& config);  // image_size
// For image=model: that of the config, but images that are all alike and small are taken as they are.
PictureSize model_image_size(const std::vector<PictureSize>& sizes, const Json& config);
void check_patches(const PictureSize& size, const Json& config);  // a UsageError where the patch size does not divide it

// The keys of preprocessor_config.json that make images of this size: resize is "crop", "squash" or "pad". sizes: of the images; of a crop
// that is not square the shorter side is made just long enough that no image leaves a border.
Json resize_keys(const PictureSize& size, const std::string& resize, const std::vector<PictureSize>& sizes);

// Of the model to train. Writes image_size into its config, and the values in force into the options. config: of the preset, or of `from`,
// whose preprocessor_config.json then counts alone.
struct ImageInputs {
  Json preprocessing;     // keys of preprocessor_config.json
  bool complete = false;  // false: the colours are still missing
  std::string why = {};   // where the size comes from, for people
};
ImageInputs choose_image_size(ImageOptions& options, const Chosen& chosen, const PictureData& train, Json& config);

// image_mean and image_std of data, measured on some 1000 of them.
Json colour_keys(const PictureData& data);

}  // namespace heed
