// Writes what every layer of a vision transformer looks at in an image, as PNG files: the attention of the class token to the patches, mean
// over the heads, and attention rollout over all layers. Without arguments it makes a small model with random weights and an image.
//
//   attention_maps [CHECKPOINT IMAGE]
//
// docs/inspect.md describes the maps; heed inspect draws them with all heads.
#include <heed/data/shapes.h>
#include <heed/models/image_processor.h>
#include <heed/models/inspect.h>

#include <algorithm>
#include <iostream>

namespace {

// The image, dark where the map is small. seen: (grid[0], grid[1]), row by row
void write_map(const std::string& name, const heed::Image& image, std::span<const float> seen, std::array<int64_t, 2> grid) {
  const float most = *std::max_element(seen.begin(), seen.end());
  heed::Image out = image;
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) {
      const int64_t patch = y * grid[0] / image.height * grid[1] + x * grid[1] / image.width;
      const float light = 0.2f + 0.8f * seen[static_cast<size_t>(patch)] / most;
      for (int64_t c = 0; c < 3; ++c) {
        uint8_t& value = out.pixels[static_cast<size_t>((y * image.width + x) * 3 + c)];
        value = static_cast<uint8_t>(static_cast<float>(value) * light);
      }
    }
  heed::write_png(name, out);
  std::cout << name << '\n';
}

void make_checkpoint(const heed::Path& folder) {
  const heed::Json config = {{"architectures", {"ViTForImageClassification"}},
                             {"model_type", "vit"},
                             {"image_size", 64},
                             {"patch_size", 8},
                             {"num_channels", 3},
                             {"hidden_size", 48},
                             {"num_hidden_layers", 2},
                             {"num_attention_heads", 3},
                             {"intermediate_size", 96}};
  heed::save(heed::make_model(config), folder);
}

}  // namespace

int main(int argc, char** argv) try {
  const heed::Path folder = argc > 2 ? argv[1] : "random-vit";
  if (argc <= 2) make_checkpoint(folder);
  const heed::Image original = argc > 2 ? heed::read_image(argv[2]) : heed::synthetic_shapes({.count = 1, .side = 64}).image(0);

  const heed::Model model = heed::load(folder);
  const heed::ImageProcessor process(folder);
  const heed::Image image = process.prepared(original);
  const heed::NoGrad no_grad;
  const heed::TensorMap out = model({{"pixel_values", process(std::span(&original, 1))}}, {.attentions = true});

  const heed::AttentionMaps maps = heed::maps_in(out, "attentions.", "attention", {});
  const std::array<int64_t, 2> grid = heed::patch_grid(model, image);
  for (size_t i = 0; i < maps.layers.size(); ++i)
    write_map("layer-" + std::to_string(maps.layers[i]) + ".png", image, heed::patches_seen(maps.mean(i), maps.N, grid[0] * grid[1]), grid);
  write_map("rollout.png", image, heed::patches_seen(heed::rollout(out, "attentions."), maps.N, grid[0] * grid[1]), grid);
} catch (const heed::Error& error) {
  std::cerr << "attention_maps: " << error.what() << '\n';
  return error.exit_code();
}
