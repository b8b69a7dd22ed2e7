// Checkpoints with NaN or infinity are rejected with the tensor's name, and no command outputs NaN.
#include "heed/io/image.h"
#include "heed/models/model.h"
#include "heed/ops/ops.h"
#include "tests/cli/program.h"
#include "tests/models/text_folder.h"

namespace heed::test {
namespace {

// Sets `count` values of a tensor in a checkpoint, starting at `first`.
void poison(const Path& folder, const std::string& name, float value, int64_t count = 1, int64_t first = 0) {
  const Path path = folder / "model.safetensors";
  NamedTensors tensors;
  {
    const Safetensors file = Safetensors::open(path);
    for (const std::string& each : file.names()) {
      std::vector<float> values = file.tensor(each).to_vector<float>();
      if (each == name) std::fill_n(values.begin() + first, count, value);
      tensors.emplace_back(each, converted(Tensor::from(values, file.entry(each).shape, kCpu), file.entry(each).dtype));
    }
  }
  write_safetensors(path, tensors);
}

void expect_ran(const std::string& arguments, int exit_code, const std::string& fragment) {
  const ProgramResult ran = run_heed(arguments);
  EXPECT_EQ(ran.exit_code, exit_code) << arguments << "\n" << ran.out << ran.err;
  EXPECT_NE(ran.err.find(fragment), std::string::npos) << arguments << "\nfound: " << ran.err << "expected: " << fragment;
  EXPECT_EQ(ran.out.find("nan"), std::string::npos) << arguments << "\n" << ran.out;
}

TEST(Nonfinite, weights_are_refused_with_the_name_of_their_tensor) {
  const TextFolder folder("bert-sentiment");
  const std::string name = "bert.encoder.layer.1.output.dense.weight";
  poison(folder.path(), name, NAN, 3);
  for (const Weights weights : {Weights::trainable, Weights::packed, Weights::int8})
    expect_refused([&] { load(folder.path(), {.weights = weights}); },
                   "model.safetensors: has weights that are NaN or infinite: 3 of 9216 in \"" + name + "\"; the checkpoint is damaged");
  std::string warning;
  const Model model = load(folder.path(), {.names = {.allow_nonfinite = [&](const std::string& message) { warning = message; }}});
  EXPECT_NE(warning.find("3 of 9216 in \"" + name + "\""), std::string::npos) << warning;
  EXPECT_NE(model.params().nonfinite().find(name), std::string::npos);
}

TEST(Nonfinite, half_precision_too) {
  const Folder folder;
  std::filesystem::copy(fixture("deit-teacher"), folder.path());
  poison(folder.path(), "deit.layernorm.bias", INFINITY);
  expect_refused([&] { load(folder.path()); }, "1 of 24 in \"deit.layernorm.bias\"");
}

TEST(Nonfinite, large_numbers_are_still_numbers) {
  const Folder folder;
  std::filesystem::copy(fixture("vit-classify"), folder.path());
  poison(folder.path(), "vit.encoder.layer.0.output.dense.bias", 3e38f, 48);
  EXPECT_TRUE(load(folder.path()).params().nonfinite().empty());
}

TEST(Nonfinite, text_commands_never_answer_with_nan) {
  const TextFolder folder("bert-sentiment");
  const std::string model = folder.path().string(), named = "\"classifier.bias\"";
  put(folder / "data.tsv", "text\tlabel\nhello\t0\nworld\t1\n");
  poison(folder.path(), "classifier.bias", NAN);
  expect_ran("predict " + model + " hello", 3, named);
  expect_ran("predict --int8 " + model + " hello", 3, named);
  expect_ran("eval " + model + " " + (folder / "data.tsv").string(), 3, named);
  expect_ran("predict --allow-nonfinite " + model + " hello", 3, "predict: \"hello\": the output of BertForSequenceClassification is NaN");
  expect_ran("eval --allow-nonfinite " + model + " " + (folder / "data.tsv").string(), 3,
             "\": the output of BertForSequenceClassification is NaN");
  expect_ran("train sentiment from=" + model + " data=" + (folder / "data.tsv").string() + " --runs " + (folder / "runs").string(), 3,
             named);
  poison(folder.path(), "classifier.bias", 0);
  poison(folder.path(), "bert.embeddings.word_embeddings.weight", INFINITY, 1, 48 * 210);  // of an unused token
  expect_ran("embed " + model + " hello", 3, "1 of 10128 in \"bert.embeddings.word_embeddings.weight\"");
  expect_ran("predict --allow-nonfinite " + model + " hello", 0, "heed: warning: " + model + "/model.safetensors: has weights");
}

TEST(Nonfinite, generation_and_images) {
  const Folder folder;
  std::filesystem::copy(fixture("gpt2-lm"), folder / "gpt2");
  std::filesystem::copy(fixture("vit-classify"), folder / "vit");
  write_png(folder / "a.png", Image{32, 32, std::vector<uint8_t>(3 * 32 * 32, 90)});
  const std::string gpt2 = (folder / "gpt2").string(), vit = (folder / "vit").string(), image = (folder / "a.png").string();
  poison(folder / "gpt2", "transformer.ln_f.bias", NAN);
  poison(folder / "vit", "classifier.weight", -INFINITY);
  expect_ran("generate " + gpt2 + " --ids '1 2 3'", 3, "\"transformer.ln_f.bias\"");
  expect_ran("generate --allow-nonfinite --beams 2 " + gpt2 + " --ids '1 2 3'", 3, "the output of GPT2LMHeadModel is NaN or infinite");
  expect_ran("generate --allow-nonfinite " + gpt2 + " --ids '1 2 3'", 3, "the output of GPT2LMHeadModel is NaN or infinite");
  expect_ran("convert " + gpt2 + " " + (folder / "to").string(), 3, "\"transformer.ln_f.bias\"");
  expect_ran("parity " + gpt2, 3, "\"transformer.ln_f.bias\"");
  expect_ran("predict --allow-nonfinite " + vit + " " + image, 3, image + ": the output of ViTForImageClassification is NaN");
  // Finite weights that overflow: the message names the image and the possible cause.
  std::filesystem::copy(fixture("vit-classify"), folder / "huge");
  poison(folder / "huge", "classifier.weight", 3e38f, 480);
  expect_ran("predict " + (folder / "huge").string() + " " + image, 3,
             image + ": the output of ViTForImageClassification is NaN or infinite: its weights are finite");
}

TEST(Nonfinite, numbers_of_image_preprocessing_are_bounded) {
  const Folder folder;
  std::filesystem::copy(fixture("vit-classify"), folder.path());
  write_png(folder / "a.png", Image{32, 32, std::vector<uint8_t>(3 * 32 * 32, 90)});
  const auto refused = [&](const Json& keys, const std::string& fragment) {
    Json json{{"image_processor_type", "ViTImageProcessor"}, {"size", {{"height", 32}, {"width", 32}}}};
    json.update(keys);
    put(folder / "preprocessor_config.json", json.dump());
    expect_ran("predict " + folder.path().string() + " " + (folder / "a.png").string(), 3, "preprocessor_config.json: " + fragment);
  };
  refused({{"rescale_factor", 1e300}}, "rescale_factor is \"1e+300\", expected");
  refused({{"image_mean", {1e30, 0, 0}}}, "image_mean[0] is");
  refused({{"image_std", {1e-30, 1, 1}}}, "image_std is");
  refused({{"image_std", {0, 1, 1}}}, "image_std is");
}

}  // namespace
}  // namespace heed::test
