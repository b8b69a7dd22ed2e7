#include "heed/train/image_size.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "heed/core/parallel.h"
#include "heed/core/parse.h"
#include "heed/models/architecture.h"
#include "heed/models/image_processor.h"
#include "heed/models/resolution.h"

namespace heed {
namespace {

constexpr int64_t kSmallSide = 64;                       // largest side of images that are used without resizing
constexpr int64_t kMaxPatches = 16, kMaxAutoSide = 224;  // per side, for image=auto
constexpr int64_t kConvolutionMultiple =
    8;  // image=auto for convolutional networks, which halve the image several times: a multiple of this
constexpr int64_t kLargestSide = 8192;

std::array<int64_t, 2> patch_in(const Json& config) {  // height and width; 1: no patches
  std::vector<int64_t> patch = Config(config, "config.json").sizes("patch_size", {1});
  patch.resize(2, patch[0]);
  return {patch[0], patch[1]};
}

bool are_small_and_equal(const std::vector<ImageSize>& sizes) {
  return !sizes.empty() && std::max(sizes[0].width, sizes[0].height) <= kSmallSide &&
         std::all_of(sizes.begin(), sizes.end(), [&](const ImageSize& size) { return size == sizes[0]; });
}

int64_t median_of(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The smallest length of the shorter side with which a resized image covers the size. ImageProcessor::resized truncates the other side to
// an integer.
int64_t covering_edge(const ImageSize& image, const ImageSize& size) {
  const bool upright = image.width <= image.height;
  const int64_t shorter = upright ? image.width : image.height, longer = upright ? image.height : image.width;
  const int64_t first = upright ? size.width : size.height, second = upright ? size.height : size.width;
  const auto other = [&](int64_t edge) {
    return static_cast<int64_t>(static_cast<double>(edge) * static_cast<double>(longer) / static_cast<double>(shorter));
  };
  int64_t edge = std::max(first, second * shorter / longer);
  while (other(edge) < second) ++edge;
  return edge;
}

}  // namespace

ImageSize image_size_in(const std::string& text) {
  const std::vector<std::string> sides = split(text, 'x');
  ImageSize out;
  out.width = parse_number<int64_t>(sides.front()).value_or(0);
  out.height = parse_number<int64_t>(sides.back()).value_or(0);
  const bool good = sides.size() <= 2 && std::min(out.width, out.height) >= 1 && std::max(out.width, out.height) <= kLargestSide;
  check<UsageError>(good, "train: image=", text, ", expected auto, model, a side such as 64, or WIDTHxHEIGHT such as 96x64, from 1 to ",
                    kLargestSide, " pixels");
  return out;
}

std::string text_of(const ImageSize& size) {
  return std::to_string(size.width) + (size.width == size.height ? "" : "x" + std::to_string(size.height));
}

std::vector<ImageSize> image_sizes(const ImageData& data) {
  constexpr int64_t sampled = 50;  // data without files have one common size
  std::vector<ImageSize> out(static_cast<size_t>(data.size ? data.count() : std::min(data.count(), sampled)));
  parallel_for(std::ssize(out), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ImageSize& size = out[static_cast<size_t>(i)];
      try {
        if (data.size) {
          size = data.size(i);
        } else {
          const Image image = data.image(i);
          size = {image.width, image.height};
        }
      } catch (const FileError&) {
        size = {};  // reported when it is decoded
      }
    }
  });
  std::erase_if(out, [](const ImageSize& size) { return size.width <= 0 || size.height <= 0; });
  return out;
}

void declare(Settings& settings, ImageOptions& options) {
  settings.add("image", options.image,
               "Size of the model's images in pixels: a side such as 64, or WIDTHxHEIGHT such as 96x64; auto: chosen from the data; "
               "model: from the preset or `from`");
  settings.add("resize", options.resize,
               "How images are resized. crop: resize the shorter side, centre crop; squash: ignore the aspect ratio; pad: black borders; "
               "model: same as `from`",
               {.choices = {"crop", "squash", "pad", "model"}});
}

void check_image_settings(const Settings& settings, const JobOptions& chosen) {
  const bool from = !chosen.from.empty();
  const auto is_explicit = [&](const char* key) {
    return settings.given(key) && settings.text(key) != "auto" && settings.text(key) != "model";
  };
  for (const char* key : {"image", "resize"})
    check<UsageError>(!from || !is_explicit(key), "train: ", key, "=", settings.text(key), " with from=", chosen.from,
                      ": its preprocessor_config.json defines the images; remove ", key);
  check<UsageError>(from || settings.text("resize") != "model", "train: resize=model without from=, expected crop, squash or pad");
}

ImageSize median_size(const std::vector<ImageSize>& sizes) {
  std::vector<int64_t> widths, heights;
  for (const ImageSize& size : sizes) widths.push_back(size.width), heights.push_back(size.height);
  return {median_of(std::move(widths)), median_of(std::move(heights))};
}

ImageSize size_in_config(const Json& config) {
  std::vector<int64_t> size = Config(config, "config.json").sizes("image_size", {224});
  size.resize(2, size[0]);
  return {size[1], size[0]};
}

ImageSize default_image_size(const ImageData& data, const std::vector<ImageSize>& sizes, const Json& config) {
  const ImageSize from_config = size_in_config(config);
  if (sizes.empty()) return from_config;
  const auto [high, wide] = patch_in(config);
  const ImageSize first = sizes.front();
  const bool whole_patches = first.height % high == 0 && first.width % wide == 0;
  if (are_small_and_equal(sizes) && (whole_patches || !data.files)) return first;
  if (!data.files) return from_config;
  const int64_t patch = std::lcm(high, wide), multiple = patch > 1 ? patch : kConvolutionMultiple;
  const int64_t budget = patch > 1 ? std::min(kMaxPatches * patch, kMaxAutoSide) : kSmallSide;
  const int64_t most = std::max({budget, from_config.width, from_config.height});
  std::vector<int64_t> shorter;
  for (const ImageSize& size : sizes) shorter.push_back(std::min(size.width, size.height));
  const int64_t side = std::max(std::min(median_of(std::move(shorter)), most) / multiple, int64_t{1}) * multiple;
  return {side, side};
}

ImageSize model_image_size(const std::vector<ImageSize>& sizes, const Json& config) {
  return are_small_and_equal(sizes) ? sizes.front() : size_in_config(config);
}

void check_patches(const ImageSize& size, const Json& config) {
  const auto [high, wide] = patch_in(config);
  const auto fits = [](int64_t side, int64_t patch) { return side % patch == 0; };
  check<UsageError>(
      fits(size.height, high) && fits(size.width, wide), "train: image=", text_of(size), " is not a multiple of the patch size ", wide,
      high == wide ? "" : " x " + std::to_string(high), ", expected for example image=",
      text_of({std::max<int64_t>(size.width / wide, 1) * wide, std::max<int64_t>(size.height / high, 1) * high}), ", or another patch=");
}

Json resize_keys(const ImageSize& size, const std::string& resize, const std::vector<ImageSize>& sizes) {
  const Json plain{{"height", size.height}, {"width", size.width}};
  Json out{{"image_processor_type", "ViTImageProcessor"}, {"do_resize", true}, {"size", plain}, {"resample", 2}};
  if (resize == "squash") return out;
  if (resize == "pad") {
    out["size"] = {{"max_height", size.height}, {"max_width", size.width}};
  } else {
    int64_t edge = std::min(size.width, size.height);
    for (const ImageSize& image : sizes) edge = std::max(edge, covering_edge(image, size));
    out["size"] = {{"shortest_edge", edge}};
  }
  out["do_center_crop"] = true;
  out["crop_size"] = plain;
  return out;
}

ImageInputs choose_image_size(ImageOptions& options, const JobOptions& chosen, const ImageData& train, Json& config) {
  if (!chosen.from.empty()) {
    options = {.image = "model", .resize = "model"};
    if (const std::optional<Config> found = image_processor_config(chosen.from))
      return {.preprocessing = found->json(), .complete = true, .why = "as in from="};
    return {.preprocessing = resize_keys(size_in_config(config), "squash", {}), .why = "as in from="};
  }
  const std::vector<ImageSize> sizes = image_sizes(train);
  const bool in_config = chosen.model.model.contains("image_size");
  ImageInputs out;
  ImageSize size = size_in_config(config);
  if (options.image == "auto" && !in_config) {
    size = default_image_size(train, sizes, config);
    const ImageSize median = sizes.empty() ? size : median_size(sizes);
    out.why = "chosen from the data with median " + std::to_string(median.width) + " x " + std::to_string(median.height) +
              "; set image= to change it";
  } else if (options.image == "model" && !in_config) {
    size = model_image_size(sizes, config);
  } else if (options.image != "auto" && options.image != "model") {
    const ImageSize requested = image_size_in(options.image);
    check<UsageError>(!in_config || requested == size, "train: image=", options.image, " with model.image_size, expected only one of them");
    const bool needs_no_resize = !sizes.empty() && std::count(sizes.begin(), sizes.end(), requested) == std::ssize(sizes);
    if (!in_config && !needs_no_resize) check_patches(requested, config);
    size = requested;
  }
  options.image = text_of(size);
  config["image_size"] = size.height == size.width ? Json(size.height) : Json{size.height, size.width};
  out.preprocessing = resize_keys(size, options.resize, sizes);
  return out;
}

void fit_positions(Model& model, const Image& prepared) {
  const auto [P, Q] = patch_sides(model);
  const std::array<int64_t, 2> size{prepared.height / P * P, prepared.width / Q * Q};
  const std::array<int64_t, 3> before = image_shape(model);
  if (model.family().other_sizes && std::min(size[0], size[1]) > 0 && size != std::array{before[1], before[2]})
    model = at_image_size(model, size);
}

Json colour_keys(const ImageData& data, int64_t channels) {
  const auto C = static_cast<size_t>(channels);
  std::array<double, 3> sum{}, square{};
  double count = 0;
  for (int64_t i = 0; i < data.count(); i += std::max<int64_t>(data.count() / 1000, 1)) {
    const Image image = data.image(i);
    for (size_t p = 0; p < image.pixels.size(); p += 3)
      for (size_t c = 0; c < C; ++c) {
        const double value = (C == 1 ? grey_of(&image.pixels[p]) : image.pixels[p + c]) / 255.0;
        sum[c] += value;
        square[c] += value * value;
      }
    count += static_cast<double>(image.width * image.height);
  }
  Json means = Json::array(), deviations = Json::array();
  for (size_t c = 0; c < C; ++c) {
    const double mean = sum[c] / count;
    means.push_back(std::round(mean * 1e4) / 1e4);
    deviations.push_back(std::max(std::round(std::sqrt(std::max(square[c] / count - mean * mean, 0.0)) * 1e4) / 1e4, 0.01));
  }
  return {{"do_rescale", true}, {"rescale_factor", 1 / 255.0}, {"do_normalize", true}, {"image_mean", means}, {"image_std", deviations}};
}

}  // namespace heed
