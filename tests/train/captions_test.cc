// The tasks on images with captions: comparing them, and writing captions.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "heed/core/autograd.h"
#include "heed/models/caption.h"
#include "heed/train/caption_scores.h"
#include "heed/train/lockstep.h"
#include "heed/train/optimizer.h"
#include "heed/train/retrieval.h"
#include "heed/train/training_job.h"
#include "tests/cli/program.h"
#include "tests/expect_error.h"
#include "tests/models/fixtures.h"

namespace heed::test {
namespace {

using CaptionArguments = std::vector<std::string>;

const CaptionArguments kTinyClip{"model.text_config.hidden_size=48",        "model.text_config.num_hidden_layers=1",
                                 "model.text_config.intermediate_size=96",  "model.vision_config.hidden_size=48",
                                 "model.vision_config.num_hidden_layers=1", "model.vision_config.intermediate_size=96",
                                 "model.vision_config.patch_size=12",       "model.projection_dim=24"},
    kTinyCaptioner{"model.encoder.hidden_size=48",       "model.encoder.num_hidden_layers=1",  "model.encoder.intermediate_size=96",
                   "model.encoder.patch_size=12",        "model.decoder.hidden_size=32",       "model.decoder.num_hidden_layers=1",
                   "model.decoder.intermediate_size=64", "model.decoder.hidden_dropout_prob=0"};

struct CaptionRun {
  CaptionRun(const std::string& name, const CaptionArguments& tiny, const CaptionArguments& arguments) : training(name) {
    training.apply(tiny);
    training.apply(arguments);
    task = training.make();
  }
  double figure(const std::string& name) const {
    const NoGrad no_grad;
    for (const auto& [key, value] : task.evaluate().figures)
      if (key == name) return value;
    ADD_FAILURE() << "there is no " << name;
    return 0;
  }
  void train(int64_t epochs, float rate) const {
    Tensors trainable;
    for (const Parameter& each : task.model->params().all())
      if (each.options.learned) trainable.push_back(each.tensor);
    Adam optimizer({{trainable, 0}}, {});
    Rng rng(1);
    for (int64_t epoch = 0; epoch < epochs; ++epoch)
      for (const std::vector<int64_t>& which : task.batches(epoch)) {
        backward(task.forward(task.batch(epoch, which), {.mode = training_with(rng)}).loss);
        optimizer.step(rate);
        optimizer.zero_grad();
      }
  }
  TrainingJob training;
  Task task;
};

TEST(ContrastiveTask, finds_captions_of_images_above_chance) {
  const CaptionRun run("contrastive", kTinyClip, {"data=scenes:960", "batch=32"});
  EXPECT_EQ(run.task.counts, (decltype(run.task.counts){{"train", 960}, {"validation", 192}, {"test", 192}}));
  EXPECT_NEAR(run.figure("loss"), std::log(64), 1);
  EXPECT_LT(run.figure("image_to_text_top5_accuracy"), 0.1);
  run.train(7, 2e-3f);
  EXPECT_LT(run.figure("loss"), std::log(64) - 1);
  EXPECT_GT(run.figure("image_to_text_top5_accuracy"), 0.13);  // chance: 0.026
  EXPECT_GT(run.figure("text_to_image_top5_accuracy"), 0.13);
  const NoGrad no_grad;
  const std::vector<Sample> samples = run.task.samples();
  ASSERT_FALSE(samples.empty());
  for (const Sample& sample : samples) {
    EXPECT_EQ(sample.right, sample.truth == sample.guess);
    EXPECT_TRUE(sample.score > 0 && sample.score <= 1) << sample.score;
    EXPECT_EQ(sample.map_rows * sample.map_columns, 16);
    EXPECT_NEAR(std::accumulate(sample.map.begin(), sample.map.end(), 0.0f), 1, 1e-4f);
  }
}

TEST(ContrastiveTask, takes_square_images_only) {
  TrainingJob training("contrastive");
  training.apply(kTinyClip);
  training.apply({"data=scenes:20", "image=96x48"});
  expect_error<UsageError>([&] { training.make(); }, "image=96x48, but CLIP takes square images only, expected for example image=48");
}

TEST(ContrastiveTask, needs_two_samples_in_a_batch) {
  TrainingJob training("contrastive");
  training.apply({"data=scenes:20", "batch=1"});
  expect_error<UsageError>([&] { training.make(); }, "batch=1, which has nothing to compare");
}

// Two images have the same caption, and one has two captions.
TEST(Retrieval, counts_every_caption_of_an_image_as_right) {
  const Retrieval all{.images = Tensor::from(std::vector<float>{1, 0, 0, 1, 0.6f, 0.8f}, {3, 2}, kCpu),
                      .texts = Tensor::from(std::vector<float>{1, 0, 0.8f, 0.6f, 0, 1}, {3, 2}, kCpu),
                      .captions = {"a", "b", "c"},
                      .image_of = {0, 1, 2, 2},
                      .text_of = {0, 2, 1, 2},
                      .factor = 2};
  const Evaluation found = all.evaluation();
  EXPECT_EQ(found.figures[1].first, "image_to_text_accuracy");
  EXPECT_DOUBLE_EQ(found.figures[1].second, 1);    // images 0, 1 and 2: texts a, c and b
  EXPECT_NEAR(found.figures[3].second, 1, 1e-12);  // text b is closest to image 2
  Retrieval wrong = all;
  wrong.text_of = {1, 0, 2, 2};
  EXPECT_NEAR(wrong.evaluation().figures[1].second, 0, 1e-12);
  EXPECT_EQ(wrong.evaluation().detail.at("different_captions"), 3);
}

// A model that gives all inputs the same vector finds one of eight.
TEST(Retrieval, equal_vectors_are_not_found_by_all) {
  Retrieval all{.images = Tensor::ones({8, 2}, kCpu), .texts = Tensor::ones({8, 2}, kCpu)};
  for (int64_t i = 0; i < 8; ++i) {
    all.captions.push_back(std::to_string(i));
    all.image_of.push_back(i);
    all.text_of.push_back(i);
  }
  for (const auto& [name, value] : all.evaluation().figures) {
    if (name == "loss") continue;
    EXPECT_DOUBLE_EQ(value, name.find("top5") == name.npos ? 1.0 / 8 : 5.0 / 8) << name;
  }
}

// The shards of a batch have the gradient of the whole batch, because every shard sees the vectors of all.
TEST(Clip, shards_have_the_gradient_of_the_whole_batch) {
  const TensorMap inputs = inputs_in(Safetensors::open(fixture("clip-pairs") / "io.safetensors"));
  const auto gradients = [&](const std::vector<int64_t>& cuts, double& value) {
    const Model model = load(fixture("clip-pairs"));
    Rng rng(1);
    Lockstep lockstep(
        world(), [](size_t) {}, [](size_t) {});
    value = 0;
    lockstep.run(cuts.size() - 1, [&](size_t s, BatchShards& shards) {
      const ShardScope scope(cuts.size() > 2 ? &shards : nullptr);
      TensorMap part;
      for (const auto& [name, x] : inputs)
        if (name != "return_loss") part[name] = contiguous(slice(x, 0, cuts[s], cuts[s + 1]));
      const Tensor loss = model(part, {.mode = training_with(rng), .loss_only = true}).at("loss");
      const float share = static_cast<float>(cuts[s + 1] - cuts[s]) / static_cast<float>(cuts.back());
      value += static_cast<double>(loss.item() * share);
      backward(scale(loss, share));
    });
    std::vector<std::vector<float>> out;
    for (const Parameter& each : model.params().all())
      if (each.options.learned) out.push_back(each.tensor.grad().to_vector<float>());
    return out;
  };
  double loss = 0, loss_of_shards = 0;
  const auto whole = gradients({0, 3}, loss), shards = gradients({0, 1, 3}, loss_of_shards);
  EXPECT_NEAR(loss_of_shards, loss, 1e-5);
  ASSERT_EQ(whole.size(), shards.size());
  for (size_t p = 0; p < whole.size(); ++p)
    for (size_t i = 0; i < whole[p].size(); ++i) EXPECT_NEAR(shards[p][i], whole[p][i], 1e-5 + 1e-4 * std::abs(whole[p][i])) << p;
}

TEST(CaptionTask, learns_what_is_in_the_image) {
  const CaptionRun run("caption", kTinyCaptioner, {"data=scenes:320", "batch=32"});
  const double before = run.figure("loss");
  EXPECT_NEAR(before, std::log(30), 1.2);
  run.train(10, 3e-3f);
  // Without the image, the colour alone has 8 equally likely values: a model that only knows the grammar has a loss of about 0.7.
  EXPECT_LT(run.figure("loss"), 0.9);
  EXPECT_GT(run.figure("accuracy"), 0.7);
  const NoGrad no_grad;
  const std::vector<Sample> samples = run.task.samples();
  ASSERT_EQ(samples.size(), 16u);
  std::set<std::string> different;
  for (const Sample& sample : samples) {
    different.insert(sample.guess);
    EXPECT_EQ(sample.guess.substr(0, 2), "a ") << sample.guess;
    EXPECT_EQ(sample.map_rows * sample.map_columns, 16);
    EXPECT_NEAR(std::accumulate(sample.map.begin(), sample.map.end(), 0.0f), 1, 1e-4f);
  }
  EXPECT_GT(different.size(), 1u);  // the image matters
}

TEST(CaptionScores, ignore_case_and_spaces_at_punctuation) {
  EXPECT_EQ(plain_caption("A red  Ball, number 7."), plain_caption("a red ball , number 7 ."));
  EXPECT_NE(plain_caption("a red ball"), plain_caption("a red ball."));
}

// A folder with the model of a task, as a run saves it, and an image.
struct CaptionFolder : Folder {
  explicit CaptionFolder(const CaptionRun& run) {
    save(*run.task.model, path());
    run.task.save_preprocessing(path());
    write_png(path() / "photo.png", read_captions("scenes:1", DataPart::train).images.image(0));
  }
};

TEST(CaptionTask, gives_a_model_for_every_command) {
  const CaptionRun run("caption", kTinyCaptioner, {"data=scenes:20", "batch=10"});
  const CaptionFolder folder(run);
  const std::string model = folder.path().string(), photo = model + "/photo.png";
  const ProgramResult caption = run_heed("predict " + model + " " + photo + " --json");
  EXPECT_EQ(caption.exit_code, 0) << caption.err;
  EXPECT_TRUE(Json::parse(caption.out).contains("caption")) << caption.out;
  const ProgramResult drawn = run_heed("inspect " + model + " " + photo + " --target 'a red circle' --png " + model + "/words.png");
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_GT(read_image(folder / "words.png").width, 400);
  const ProgramResult maps = run_heed("inspect " + model + " " + photo + " --target 'a red circle' --json");
  EXPECT_EQ(maps.exit_code, 0) << maps.err;
  const Json cross = Json::parse(maps.out)["maps"][0];
  EXPECT_EQ(cross["kind"], "cross");
  const ProgramResult shapes = run_heed("inspect " + model + " " + photo + " --shapes");
  EXPECT_EQ(shapes.exit_code, 0) << shapes.err;
  EXPECT_EQ(run_heed("inspect " + model).exit_code, 0);
  const ProgramResult eval = run_heed("eval " + model + " scenes:20 --json");
  EXPECT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_TRUE(Json::parse(eval.out)["figures"].contains("exact")) << eval.out;
  EXPECT_EQ(run_heed("eval " + model + " scenes:20 --beams 2").exit_code, 2);
}

TEST(ContrastiveTask, gives_a_model_for_eval_and_predict) {
  const CaptionRun run("contrastive", kTinyClip, {"data=scenes:20", "batch=10"});
  const CaptionFolder folder(run);
  const std::string model = folder.path().string();
  const ProgramResult eval = run_heed("eval " + model + " scenes:20 --json");
  EXPECT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_EQ(Json::parse(eval.out)["what"], "10 images, 10 captions, test");
  const ProgramResult label = run_heed("predict " + model + " " + model + "/photo.png --label 'a red circle' --label 'a star' --json");
  EXPECT_EQ(label.exit_code, 0) << label.err;
  EXPECT_EQ(Json::parse(label.out)["labels"].size(), 2u);
  // Its text encoder has one end token for each text.
  EXPECT_NE(run.task.model->config()["text_config"]["eos_token_id"], 2);
}

TEST(CaptionTask, skips_images_that_cannot_be_read) {
  const Folder folder;
  const Image image = read_captions("scenes:1", DataPart::train).images.image(0);
  std::string good = "image,caption\n";
  for (const char* name : {"a", "b", "c", "d"}) {
    write_png(folder / (std::string(name) + ".png"), image);
    good += std::string(name) + ".png,a red circle\n";
  }
  put(folder / "bad.png", "no image");
  put(folder / "train.csv", good + "bad.png,a star\nmissing.png,a star\n");
  for (const char* name : {"dev.csv", "only.csv"}) put(folder / name, "image,caption\nbad.png,a star\n");
  // All images of the validation part are bad: some of the others take their place.
  const CaptionRun run("caption", kTinyCaptioner, {"batch=2", "skip_bad=true", "data=" + (folder / "train.csv").string()});
  EXPECT_EQ(run.task.counts, (decltype(run.task.counts){{"train", 3}, {"validation", 1}, {"test", 0}}));
  const auto counted = [](const std::string& note) { return note.find("3 of 7 images cannot be read and are left out") != note.npos; };
  EXPECT_EQ(std::count_if(run.task.notes.begin(), run.task.notes.end(), counted), 1);
  TrainingJob training("caption");
  training.apply({"skip_bad=true", "data=" + (folder / "only.csv").string()});
  expect_error<FileError>([&] { training.make(); }, "found no readable images to train on");
}

TEST(CaptionTask, keeps_the_beams_of_a_model_unless_they_are_set) {
  const CaptionRun run("caption", kTinyCaptioner, {"data=scenes:20", "batch=10", "beams=3"});
  const CaptionFolder folder(run);
  const auto beams_of = [&](const std::vector<std::string>& more) {
    const CaptionRun again("caption", {"data=scenes:20", "batch=10", "from=" + folder.path().string()}, more);
    const CaptionFolder saved(again);
    EXPECT_EQ(again.training.settings().text("beams"), std::to_string(caption_options(load(saved.path())).beams));
    return caption_options(load(saved.path())).beams;
  };
  EXPECT_EQ(beams_of({}), 3);
  EXPECT_EQ(beams_of({"beams=2"}), 2);
}

TEST(CaptionTask, notices_that_a_caption_belongs_to_another_image) {
  const Folder folder;
  for (const char* name : {"a.png", "b.png"}) write_png(folder / name, read_captions("scenes:1", DataPart::train).images.image(0));
  put(folder / "dev.csv", "image,caption\na.png,a star\n");
  const auto data = [&](const std::string& image_of_third) {
    put(folder / "train.csv", "image,caption\na.png,a star\nb.png,a circle\n" + image_of_third + ",a ring\n");
    return CaptionRun("caption", kTinyCaptioner, {"batch=2", "data=" + (folder / "train.csv").string()}).task.data.at("train");
  };
  EXPECT_EQ(data("a.png"), data("a.png"));
  EXPECT_NE(data("a.png"), data("b.png"));
}

TEST(CaptionTask, decodes_step_by_step_as_in_one_call) {
  const CaptionRun run("caption", kTinyCaptioner, {"data=scenes:20", "batch=10"});
  const NoGrad no_grad;
  const Model& model = *run.task.model;
  const Batch batch = run.task.batch(0, {0, 1, 2});
  const TensorMap images{{"pixel_values", batch.inputs.at("pixel_values")}};
  GenerationOptions options{.max_length = 8, .pad = 0, .start = 0};
  const Tensor greedy = generate(model, images, options);  // (3, L)
  TensorMap inputs = images;
  inputs["decoder_input_ids"] = greedy;
  const std::vector<int64_t> tokens = greedy.to_vector<int64_t>(), best = argmax(model(inputs).at("logits")).to_vector<int64_t>();
  const auto L = static_cast<size_t>(greedy.size(1));
  ASSERT_EQ(L, 8u);
  for (size_t b = 0; b < 3; ++b)
    for (size_t i = 0; i + 1 < L; ++i) EXPECT_EQ(tokens[b * L + i + 1], best[b * L + i]) << b << " " << i;
}

}  // namespace
}  // namespace heed::test
