// CLIP beyond parity: one kind of input, vectors of texts as an input, and texts as labels of images.
#include <gtest/gtest.h>

#include "heed/models/embed.h"
#include "tests/cli/program.h"
#include "tests/expect_error.h"
#include "tests/models/fixtures.h"
#include "tests/models/text_folder.h"

namespace heed::test {
namespace {

void expect_close_values(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-5f);
}

TEST(Clip, runs_one_encoder_alone) {
  const NoGrad no_grad;
  const Model model = load(fixture("clip-pairs"));
  TensorMap inputs = inputs_in(Safetensors::open(fixture("clip-pairs") / "io.safetensors"));
  inputs.erase("return_loss");
  const TensorMap both = model(inputs);
  TensorMap images{{"pixel_values", inputs.at("pixel_values")}};
  const TensorMap image = model(images, {.attentions = true});
  inputs.erase("pixel_values");
  const TensorMap text = model(inputs, {.attentions = true});
  expect_close_values(image.at("image_embeds"), both.at("image_embeds"));
  expect_close_values(text.at("text_embeds"), both.at("text_embeds"));
  EXPECT_TRUE(image.contains("attentions.1") && text.contains("attentions.1"));
  EXPECT_FALSE(image.contains("logits_per_image") || text.contains("logits_per_image"));
  images["text_embeds"] = text.at("text_embeds");
  expect_close_values(model(images).at("logits_per_image"), both.at("logits_per_image"));
  expect_error([&] { model(TensorMap{}); }, "clip: found neither input_ids nor pixel_values");
  images["return_loss"] = Tensor::zeros({1}, kCpu);
  images["pixel_values"] = slice(images["pixel_values"], 0, 0, 2);
  expect_error([&] { model(images); }, "clip: a loss of 3 texts and 2 images, expected a text for every image");
}

TEST(Clip, learns_which_text_belongs_to_which_image) {
  const Model model = load(fixture("clip-pairs"));
  const TensorMap inputs = inputs_in(Safetensors::open(fixture("clip-pairs") / "io.safetensors"));
  backward(model(inputs, {.loss_only = true}).at("loss"));
  for (const Parameter& each : model.params().all()) EXPECT_TRUE(each.tensor.grad().defined()) << each.name;
}

TEST(Clip, compares_images_with_texts) {
  const TextFolder folder("clip-pairs");
  const std::string model = folder.path().string(), image = fixture("images").string() + "/color.png";
  const ProgramResult found = run_heed("predict " + model + " " + image + " --label hello --label 'a a' --json");
  EXPECT_EQ(found.exit_code, 0) << found.err;
  const Json labels = Json::parse(found.out)["labels"];
  ASSERT_EQ(labels.size(), 2);
  EXPECT_NEAR(labels[0]["score"].get<double>() + labels[1]["score"].get<double>(), 1, 1e-5);
  EXPECT_EQ(run_heed("predict " + model + " " + image).exit_code, 2);
  const ProgramResult others = run_heed("predict " + fixture("vit-classify").string() + " " + image + " --label a");
  EXPECT_EQ(others.exit_code, 2);
  EXPECT_NE(others.err.find("has labels of its own, found --label"), std::string::npos) << others.err;
  EXPECT_EQ(load_embedder(folder.path()).model.architecture(), "CLIPModel");
  EXPECT_EQ(embed(load_embedder(folder.path()), std::vector<Sentence>{{"hello"}, {"a a"}}).shape(), Shape({2, 14}));
  EXPECT_EQ(run_heed("inspect " + model + " " + image + " --json").exit_code, 0);
  EXPECT_EQ(run_heed("inspect " + model + " 'hello a' --json").exit_code, 0);
}

}  // namespace
}  // namespace heed::test
