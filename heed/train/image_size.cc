#include "heed/train/image_size.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "heed/core/parallel.h"
#include "heed/models/config.h"

namespace heed {
namespace {

constexpr int64_t kSmall = 64;                                 // sides of images that are taken as they are
constexpr int64_t kMostPatches = 16, kMostPixelsOfSide = 224;  // along a side, of sizes that are chosen from the data
constexpr int64_t kWithoutPatches = 8;                         // of convolutions, which halve the image some times: a multiple of this
constexpr int64_t kLargestSide = 8192;

std::array<int64_t, 2> patch_in(const Json& config) {  // height and width; 1: there are no patches
  std::vector<int64_t> patch = Config(config, "config.json").sizes("patch_size", {1});
  patch.resize(2, patch[0]);
  return {patch[0], patch[1]};
}

bool are_small_and_alike(const std::vector<PictureSize>& sizes) {
  return !sizes.empty() && std::max(sizes[0].width, sizes[0].height) <= kSmall &&
         std::all_of(sizes.begin(), sizes.end(), [&](const PictureSize& size) { return size == sizes[0]; });
}

int64_t median_of(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The smallest shorter side with which an image covers the size: the other side is cut off to a whole number (PictureReader::resized).
int64_t covering_edge(const PictureSize& image, const PictureSize& size) {
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

PictureSize image_size_in(const std::string& text) {
  PictureSize out;
  const char* const end = text.data() + text.size();
  const auto [cross, error] = std::from_chars(text.data(), end, out.width);
  bool good = error == std::errc();
  if (good && cross != end) {
    const auto [rest, other] = std::from_chars(cross + 1, end, out.height);
    good = *cross == 'x' && other == std::errc() && rest == end;
  } else {
    out.height = out.width;
  }
  good = good && std::min(out.width, out.height) >= 1 && std::max(out.width, out.height) <= kLargestSide;
  check<UsageError>(good, "train: image=", text, ", expected auto, model, a side such as 64, or WIDTHxHEIGHT such as 96x64, from 1 to ",
                    kLargestSide, " pixels");
  return out;
}

std::string text_of(const PictureSize& size) {
  return std::to_string(size.width) + (size.width == size.height ? "" : "x" + std::to_string(size.height));
}

std::vector<PictureSize> image_sizes(const PictureData& data) {
  constexpr int64_t some = 50;  // of data that are no files: they are all alike
  std::vector<PictureSize> out(static_cast<size_t>(data.size ? data.count() : std::min(data.count(), some)));
  parallel_for(std::ssize(out), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      PictureSize& size = out[static_cast<size_t>(i)];
      try {
        if (data.size) {
          size = data.size(i);
        } else {
          const Picture picture = data.picture(i);
          size = {picture.width, picture.height};
        }
      } catch (const FileError&) {
        size = {};  // whoever decodes it says why
      }
    }
  });
  std::erase_if(out, [](const PictureSize& size) { return size.width <= 0 || size.height <= 0; });
  return out;
}

PictureSize median_size(const std::vector<PictureSize>& sizes) {
  std::vector<int64_t> widths, heights;
  for (const PictureSize& size : sizes) widths.push_back(size.width), heights.push_back(size.height);
  return {median_of(std::move(widths)), median_of(std::move(heights))};
}

PictureSize size_in_config(const Json& config) {
  std::vector<int64_t> size = Config(config, "config.json").sizes("image_size", {224});
  size.resize(2, size[0]);
  return {size[1], size[0]};
}

PictureSize default_image_size(const PictureData& data, const std::vector<PictureSize>& sizes, const Json& config) {
  const PictureSize own = size_in_config(config);
  if (sizes.empty()) return own;
  const auto [high, wide] = patch_in(config);
  const PictureSize first = sizes.front();
  const bool whole_patches = first.height % high == 0 && first.width % wide == 0;
  if (are_small_and_alike(sizes) && (whole_patches || !data.files)) return first;
  if (!data.files) return own;
  const int64_t patch = std::lcm(high, wide), multiple = patch > 1 ? patch : kWithoutPatches;
  const int64_t budget = patch > 1 ? std::min(kMostPatches * patch, kMostPixelsOfSide) : kSmall;
  const int64_t most = std::max({budget, own.width, own.height});
  std::vector<int64_t> shorter;
  for (const PictureSize& size : sizes) shorter.push_back(std::min(size.width, size.height));
  const int64_t side = std::max(std::min(median_of(std::move(shorter)), most) / multiple, int64_t{1}) * multiple;
  return {side, side};
}

PictureSize model_image_size(const std::vector<PictureSize>& sizes, const Json& config) {
  return are_small_and_alike(sizes) ? sizes.front() : size_in_config(config);
}

void check_patches(const PictureSize& size, const Json& config) {
  const auto [high, wide] = patch_in(config);
  const auto fits = [](int64_t side, int64_t patch) { return side % patch == 0; };
  check<UsageError>(fits(size.height, high) && fits(size.width, wide), "train: image=", text_of(size), " is no multiple of the patch size ",
                    wide, high == wide ? "" : " x " + std::to_string(high), ", expected for example image=",
                    text_of({std::max<int64_t>(size.width / wide, 1) * wide, std::max<int64_t>(size.height / high, 1) * high}),
                    ", or another patch=");
}

Json resize_keys(const PictureSize& size, const std::string& resize, const std::vector<PictureSize>& sizes) {
  const Json plain{{"height", size.height}, {"width", size.width}};
  Json out{{"image_processor_type", "ViTImageProcessor"}, {"do_resize", true}, {"size", plain}, {"resample", 2}};
  if (resize == "squash") return out;
  if (resize == "pad") {
    out["size"] = {{"max_height", size.height}, {"max_width", size.width}};
  } else {
    int64_t edge = std::min(size.width, size.height);
    for (const PictureSize& image : sizes) edge = std::max(edge, covering_edge(image, size));
    out["size"] = {{"shortest_edge", edge}};
  }
  out["do_center_crop"] = true;
  out["crop_size"] = plain;
  return out;
}

ImageInputs choose_image_size(ImageOptions& options, const Chosen& chosen, const PictureData& train, Json& config) {
  if (!chosen.from.empty()) {
    options = {.image = "model", .resize = "model"};
    const Path file = Path(chosen.from) / "preprocessor_config.json";
    if (std::filesystem::exists(file)) return {.preprocessing = read_json(file), .complete = true, .why = "as from= does it"};
    return {.preprocessing = resize_keys(size_in_config(config), "squash", {}), .why = "as from= has it"};
  }
  const std::vector<PictureSize> sizes = image_sizes(train);
  const bool in_config = chosen.model.model.contains("image_size");
  ImageInputs out;
  PictureSize size = size_in_config(config);
  if (options.image == "auto" && !in_config) {
    size = default_image_size(train, sizes, config);
    const PictureSize median = sizes.empty() ? size : median_size(sizes);
    out.why = "chosen from the data, whose median is " + std::to_string(median.width) + " x " + std::to_string(median.height) +
              "; image= chooses another";
  } else if (options.image == "model" && !in_config) {
    size = model_image_size(sizes, config);
  } else if (options.image != "auto" && options.image != "model") {
    const PictureSize given = image_size_in(options.image);
    check<UsageError>(!in_config || given == size, "train: image=", options.image, " beside model.image_size, expected one of the two");
    const bool as_they_are = !sizes.empty() && std::count(sizes.begin(), sizes.end(), given) == std::ssize(sizes);
    if (!in_config && !as_they_are) check_patches(given, config);
    size = given;
  }
  options.image = text_of(size);
  config["image_size"] = size.height == size.width ? Json(size.height) : Json{size.height, size.width};
  out.preprocessing = resize_keys(size, options.resize, sizes);
  return out;
}

Json colour_keys(const PictureData& data) {
  std::array<double, 3> sum{}, square{};
  double count = 0;
  for (int64_t i = 0; i < data.count(); i += std::max<int64_t>(data.count() / 1000, 1)) {
    const Picture picture = data.picture(i);
    for (size_t p = 0; p < picture.pixels.size(); ++p) {
      const double value = picture.pixels[p] / 255.0;
      sum[p % 3] += value;
      square[p % 3] += value * value;
    }
    count += static_cast<double>(picture.width * picture.height);
  }
  Json means = Json::array(), deviations = Json::array();
  for (size_t c = 0; c < 3; ++c) {
    const double mean = sum[c] / count;
    means.push_back(std::round(mean * 1e4) / 1e4);
    deviations.push_back(std::max(std::round(std::sqrt(std::max(square[c] / count - mean * mean, 0.0)) * 1e4) / 1e4, 0.01));
  }
  return {{"do_rescale", true}, {"rescale_factor", 1 / 255.0}, {"do_normalize", true}, {"image_mean", means}, {"image_std", deviations}};
}

}  // namespace heed
