#include <heed/train/optimizer_step.h>
#include <heed/train/presets.h>

#include <iostream>

int main() {
  const heed::Preset& preset = heed::preset_named("vit-tiny");
  heed::Json config = preset.config;
  config["num_hidden_layers"] = 1;
  config["image_size"] = 32;
  const heed::Model model = heed::make_model(config);

  heed::OptimizerStep optimizer(model, {});
  heed::Rng rng(1);
  const heed::Tensor pixels = heed::random_normal({4, 3, 32, 32}, 0, 1, rng, heed::kCpu);
  const heed::Tensor labels = heed::Tensor::from(std::vector<int64_t>{0, 1, 1, 0}, {4}, heed::kCpu);
  float first = 0, loss = 0;
  for (int step = 0; step < 5; ++step) {
    const heed::Tensor each = model({{"pixel_values", pixels}, {"labels", labels}}, {.mode = heed::training_with(rng)}).at("loss");
    heed::backward(each);
    optimizer.step(1e-3f);
    optimizer.zero_grad();
    loss = each.item();
    if (step == 0) first = loss;
  }
  std::cout << preset.name << ": " << (loss < first ? "the loss falls" : "the loss does not fall") << '\n';
}
