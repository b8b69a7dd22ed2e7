#include "heed/models/resolution.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "heed/core/autograd.h"
#include "heed/core/copy.h"
#include "heed/models/architecture.h"
#include "heed/models/choices.h"
#include "heed/models/image_processor.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

constexpr const char* kPreprocessor = "preprocessor_config.json";

std::string pixels_text(std::array<int64_t, 2> size) { return std::to_string(size[1]) + " x " + std::to_string(size[0]); }

TokenGrid grid_of(const Config& config, std::array<int64_t, 2> patch) {
  const std::array<int64_t, 2> image = config.sides("image_size", 224);
  return {image[0] / patch[0], image[1] / patch[1]};
}

// The value of a parameter whose shape depends on the grid of patches, at another one; undefined if there is no rule for it.
Tensor at_grid(const Parameter& from, const Shape& to, const Family& family, const TokenGrid& old_grid, const TokenGrid& new_grid) {
  const Shape& shape = from.tensor.shape();
  const bool side = from.name.ends_with("position_embeddings_2d.row") || from.name.ends_with("position_embeddings_2d.column");
  if (side && shape.rank() == 2 && to.rank() == 2 && shape[1] == to[1]) return interpolated_grid(from.tensor, {shape[0], 1}, {to[0], 1});
  const std::string& table = family.position_table;
  if (table.empty() || !from.name.ends_with(table) || shape.rank() != 3 || to.rank() != 3 || shape[2] != to[2]) return {};
  const int64_t D = shape[2], first = shape[1] - old_grid[0] * old_grid[1];  // class tokens
  if (first < 0 || to[1] - new_grid[0] * new_grid[1] != first) return {};
  const Tensor rows = reshape(from.tensor, {shape[1], D});
  const Tensor patches =
      interpolated_grid(slice(rows, 0, first, shape[1]), old_grid, new_grid, family.other_sizes.value_or(GridFilter::bicubic));
  return reshape(concat({slice(rows, 0, 0, first), patches}, 0), to);
}

// The keys of an image processor for images of another size. Of an image that is cropped, the same part remains.
void set_sizes(Json& keys, const std::string& processor, std::array<int64_t, 2> before, std::array<int64_t, 2> size) {
  if (processor == "ConvNext") {
    check<UsageError>(size[0] == size[1], "image size ", pixels_text(size), ": the image processor ConvNext makes square images only");
    keys["size"] = {{"shortest_edge", size[0]}};
    return;
  }
  const auto is = [&](const char* key, bool value) { return keys.contains(key) && keys[key].is_boolean() && keys[key] == value; };
  const bool crops = keys.contains("crop_size") && !keys["crop_size"].is_null() && !is("do_center_crop", false);
  const auto scaled = [&](const Json& side, size_t axis) {
    return static_cast<int64_t>(std::ceil(side.get<double>() * static_cast<double>(size[axis]) / static_cast<double>(before[axis])));
  };
  for (const char* key : {"size", "crop_size"}) {
    if (!keys.contains(key)) continue;
    Json& found = keys[key];
    const bool resizes_more = crops && key == std::string_view("size");
    if (resizes_more && found.is_number_integer()) {
      const bool shorter = processor == "CLIP" || processor == "Bit" || is("default_to_square", false);
      found = shorter ? Json{{"shortest_edge", found}} : Json{{"height", found}, {"width", found}};
    }
    const auto has = [&](const char* side) { return found.is_object() && found.contains(side) && found[side].is_number_integer(); };
    if (has("shortest_edge"))
      found = {{"shortest_edge", std::max(scaled(found["shortest_edge"], 0), scaled(found["shortest_edge"], 1))}};
    else if (has("max_height"))
      found = {{"max_height", size[0]}, {"max_width", size[1]}};
    else if (resizes_more && has("height") && has("width"))
      found = {{"height", scaled(found["height"], 0)}, {"width", scaled(found["width"], 1)}};
    else
      found = {{"height", size[0]}, {"width", size[1]}};
  }
}

}  // namespace

Model at_image_size(const Model& model, std::array<int64_t, 2> size) {
  const NoGrad no_grad;
  const Config before(model.config(), "config.json");
  check<FileError>(model.family().pixels && !model.family().tokens && model.family().image_keys.empty() && !model.family().image,
                   model.architecture(), ": cannot change its image size, expected a vision transformer or a convolutional network");
  Json json = model.config();
  json["image_size"] = size[0] == size[1] ? Json(size[0]) : Json{size[0], size[1]};
  const Config after(json, "config.json");
  const std::array<int64_t, 2> patch = patch_sides(model);
  const TokenGrid old_grid = grid_of(before, patch), new_grid = grid_of(after, patch);
  if (model.family().positions) {
    check<UsageError>(size[0] % patch[0] == 0 && size[1] % patch[1] == 0, "image size ", pixels_text(size), ": is not a multiple of ",
                      pixels_text(patch), ", the patches of the model");
    check<FileError>(choices("pooling").in(before.below("heed")).name != "flatten", model.architecture(),
                     ": has a flatten head, whose linear layer has weights for each of ", old_grid[0] * old_grid[1], " patches; images of ",
                     pixels_text(size), " pixels have ", new_grid[0] * new_grid[1],
                     ". Expected the pooling cls, gap or map, which take any number");
  }
  Model out = make_model(json, {.architecture = model.architecture()});
  for (const Parameter& each : out.params().all()) {
    const std::vector<Parameter>& all = model.params().all();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Parameter& other) { return other.name == each.name; });
    check(found != all.end() && !found->packed, "image size: ", each.name, " is not in the model, expected one loaded for training");
    Tensor value = found->tensor;
    if (value.shape() != each.tensor.shape()) value = at_grid(*found, each.tensor.shape(), model.family(), old_grid, new_grid);
    check<FileError>(value.defined(), model.architecture(), ": ", each.name, " has the shape ", found->tensor.shape(), "; images of ",
                     pixels_text(size), " pixels need ", each.tensor.shape(), ", and only positions added to tokens are interpolated");
    copy_into(value, each.tensor);
  }
  return out;
}

void save_at_image_size(const Path& from, const Path& to, std::array<int64_t, 2> size, const LoadOptions& names) {
  const Model model = load(from, {.names = names});
  const std::array<int64_t, 2> before = Config(model.config(), (from / "config.json").string()).sides("image_size", 224);
  Json keys;  // read first: nothing is written if the file is damaged
  if (const std::optional<Config> found = image_processor_config(from)) {
    const ModelImages images = model_images(Config(model.config(), "config.json"));
    ImageProcessor(*found, images);  // refuses sizes that are too large to scale
    keys = found->json();
    set_sizes(keys, image_processor_class(*found, images), before, size);
  }
  save(at_image_size(model, size), to);
  if (!keys.is_null()) write_json(to / kPreprocessor, keys);
}

}  // namespace heed
