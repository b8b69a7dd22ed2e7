// Classification of pictures: a vision transformer learns to name them.
#include <cmath>

#include "heed/core/parallel.h"
#include "heed/data/augment.h"
#include "heed/data/picture_data.h"
#include "heed/models/config.h"
#include "heed/models/cost.h"
#include "heed/models/inspect.h"
#include "heed/models/pictures.h"
#include "heed/train/data_print.h"
#include "heed/train/labels.h"
#include "heed/train/order.h"
#include "heed/train/scores.h"
#include "heed/train/tasks.h"

namespace heed {
namespace {

constexpr int64_t kEvaluatedAtOnce = 128, kShownFirst = 40;

struct ClassifyOptions {
  std::string data = "shapes";
  int64_t limit = 0;
  AugmentOptions augment = {};
  Mixing mixing = {};
};

// Height and width that all of the first pictures share; 0: they differ.
std::array<int64_t, 2> common_size(const PictureData& data) {
  const Picture first = data.picture(0);
  for (int64_t i = 1; i < std::min<int64_t>(data.count(), 50); ++i)
    if (const Picture other = data.picture(i); other.height != first.height || other.width != first.width) return {0, 0};
  return {first.height, first.width};
}

// What a model's folder says about its pictures: their size, and the mean and deviation of these data's colours.
Json preprocessor(const PictureData& data, int64_t height, int64_t width) {
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
  return {{"image_processor_type", "ViTImageProcessor"},
          {"do_resize", true},
          {"size", {{"height", height}, {"width", width}}},
          {"resample", 2},
          {"do_rescale", true},
          {"rescale_factor", 1 / 255.0},
          {"do_normalize", true},
          {"image_mean", means},
          {"image_std", deviations}};
}

// Everything that the functions of the task share.
struct Pictures {
  PictureData train, validation, test;
  Json preprocessing;
  PictureReader reader;
  AugmentOptions augment;
  Mixing mixing;
  LearnOptions learn;
  std::shared_ptr<Model> model;
  double multiply_adds;  // of one picture

  Tensor pixels(const PictureData& data, std::span<const int64_t> which) const {  // (B, 3, Y, X)
    std::vector<Picture> pictures(which.size());
    parallel_tasks(std::ssize(which), [&](int64_t b) { pictures[static_cast<size_t>(b)] = data.picture(which[static_cast<size_t>(b)]); });
    return reader(pictures);
  }
  static std::vector<int64_t> labels(const PictureData& data, std::span<const int64_t> which) {
    std::vector<int64_t> out;
    for (const int64_t i : which) out.push_back(data.labels[static_cast<size_t>(i)]);
    return out;
  }

  Batch batch(int64_t epoch, const std::vector<int64_t>& which) const {
    std::vector<Picture> pictures;
    for (const int64_t i : which)
      pictures.push_back(augmented(reader.prepared(train.picture(i)), augment, sample_key(learn.seed, epoch, i)));
    const Mixed mix = mixed(reader(pictures), mixing, sample_key(learn.seed + 1, epoch, which[0]));
    const std::vector<int64_t> own = labels(train, which);
    Batch out{.inputs = {{"pixel_values", mix.pixels}, {"labels", Tensor::from(own, {std::ssize(own)})}}, .samples = std::ssize(which)};
    if (mix.other.empty()) return out;
    std::vector<int64_t> others;
    for (const int64_t other : mix.other) others.push_back(own[static_cast<size_t>(other)]);
    out.inputs["other_labels"] = Tensor::from(others, {std::ssize(others)});
    out.extra = {mix.share};
    return out;
  }

  Outcome learn_from(const Batch& batch, Ask ask) const {
    ask.loss_only = true;
    ask.label_smoothing = learn.label_smoothing;
    const Named out = (*model)({{"pixel_values", batch.inputs.at("pixel_values")}, {"labels", batch.inputs.at("labels")}}, ask);
    const Tensor& logits = out.at("logits");
    Tensor loss = out.at("loss");
    if (!batch.extra.empty()) {
      CrossEntropy options;
      options.label_smoothing = learn.label_smoothing;
      const auto share = static_cast<float>(batch.extra[0]);
      loss = loss * share + cross_entropy(logits, batch.inputs.at("other_labels"), options) * (1 - share);
    }
    return {.loss = loss,
            .shares = {{"accuracy", right_of(logits, batch.inputs.at("labels"))}},
            .multiply_adds = multiply_adds * static_cast<double>(batch.samples)};
  }

  Evaluation evaluate(const PictureData& data) const {
    ClassScores scores(data.classes);
    for (const std::vector<int64_t>& which : batches_in_order(data.count(), kEvaluatedAtOnce)) {
      const Tensor logits = (*model)({{"pixel_values", pixels(data, which)}}).at("logits");
      scores.add(logits.to_vector<float>(), labels(data, which));
    }
    return scores.evaluation();
  }

  Sample look_at(const PictureData& data, int64_t i) const {
    const Picture picture = data.picture(i);
    const Named out = (*model)({{"pixel_values", reader(std::span(&picture, 1))}}, {.attentions = has_maps(*model)});
    Sample sample{.truth = data.classes[static_cast<size_t>(data.labels[static_cast<size_t>(i)])], .picture = reader.prepared(picture)};
    judge(sample, softmax(out.at("logits")).to_vector<float>(), data.classes);
    if (!out.contains("attentions.0")) return sample;
    const auto [rows, columns] = patch_grid(*model, sample.picture);
    const Tensor& map = out.at("attentions.0");                                     // (1, H, N, M)
    if (map.size(2) != map.size(3) || map.size(2) < rows * columns) return sample;  // keys that are no patches
    sample.map_rows = rows;
    sample.map_columns = columns;
    sample.map = patches_seen(rollout(out, "attentions."), map.size(2), rows * columns);
    float total = 0;
    for (const float weight : sample.map) total += weight;
    for (float& weight : sample.map) weight /= total;
    return sample;
  }

  std::vector<Sample> samples() const {
    return some_right_and_wrong(classes_in_turn(shown().labels), [&](int64_t i) { return look_at(shown(), i); });
  }
  // Some of the first epoch's, as chance changes them.
  std::vector<Sample> first_samples() const {
    std::vector<Sample> out;
    const auto batches = shuffled_batches(train.count(), kShownFirst, learn.seed, 0);
    for (const int64_t i : batches[0])
      out.push_back({.truth = train.classes[static_cast<size_t>(train.labels[static_cast<size_t>(i)])],
                     .picture = augmented(reader.prepared(train.picture(i)), augment, sample_key(learn.seed, 0, i))});
    return out;
  }
  const PictureData& shown() const { return test.count() > 0 ? test : validation; }
};

PictureData part_of(const ClassifyOptions& options, DataPart part) {
  PictureData data = read_pictures(options.data, part);
  if (part != DataPart::train || options.limit == 0 || data.count() <= options.limit) return data;
  // Every so many: files are often sorted by class.
  std::vector<int64_t> which;
  for (int64_t i = 0; i < options.limit; ++i) which.push_back(i * data.count() / options.limit);
  return chosen(std::move(data), which);
}

Json config_for(const Chosen& chosen, const PictureData& data) {
  Json config = chosen.from.empty() ? model_config(chosen.model) : read_json(Path(chosen.from) / "config.json");
  set_labels(config, data.classes);
  if (!chosen.from.empty()) return config;
  const auto [height, width] = common_size(data);
  if (!chosen.model.model.contains("image_size") && height > 0 && std::max(height, width) <= 64)
    config["image_size"] = height == width ? Json(height) : Json{height, width};
  return config;
}

Task make_task(const ClassifyOptions& options, const Chosen& chosen) {
  PictureData train = part_of(options, DataPart::train), validation = part_of(options, DataPart::validation);
  check<FileError>(train.count() > 0, options.data, ": no pictures to learn from");
  if (validation.count() == 0) {
    Split parts = split(train.count(), std::max(chosen.learn.validation, 1e-6f), chosen.learn.seed);
    validation = heed::chosen(train, parts.held_out);
    train = heed::chosen(std::move(train), parts.kept);
    check<FileError>(train.count() > 0, options.data, ": no pictures to learn from, as the only one is kept out for validation");
  }
  const Json config = config_for(chosen, train);
  auto model = model_for(chosen, config, {"classifier", "pooler"});
  std::vector<int64_t> size = Config(config, "config.json").sizes("image_size", {224});
  size.resize(2, size[0]);
  const std::string& folder = chosen.keep.empty() ? chosen.from : chosen.keep;
  const bool given = !folder.empty() && std::filesystem::exists(Path(folder) / "preprocessor_config.json");
  const Json preprocessing = given ? read_json(Path(folder) / "preprocessor_config.json") : preprocessor(train, size[0], size[1]);
  const double multiply_adds = static_cast<double>(cost_of(*model).total.multiply_adds);
  const auto all = std::make_shared<Pictures>(Pictures{.train = std::move(train),
                                                       .validation = std::move(validation),
                                                       .test = part_of(options, DataPart::test),
                                                       .preprocessing = preprocessing,
                                                       .reader = PictureReader(Config(preprocessing, "preprocessor_config.json")),
                                                       .augment = options.augment,
                                                       .mixing = options.mixing,
                                                       .learn = chosen.learn,
                                                       .model = model,
                                                       .multiply_adds = multiply_adds});
  Task task{.name = "classify", .model = model};
  task.counts = {{"train", all->train.count()}, {"validation", all->validation.count()}, {"test", all->test.count()}};
  task.data = {{"train", print_of(all->train)}, {"validation", print_of(all->validation)}, {"test", print_of(all->test)}};
  task.batches = [all](int64_t epoch) { return shuffled_batches(all->train.count(), all->learn.batch, all->learn.seed, epoch); };
  task.batch = [all](int64_t epoch, const std::vector<int64_t>& which) { return all->batch(epoch, which); };
  task.learn = [all](const Batch& batch, const Ask& ask) { return all->learn_from(batch, ask); };
  task.evaluate = [all] { return all->evaluate(all->validation); };
  if (all->test.count() > 0) task.test = [all] { return all->evaluate(all->test); };
  task.samples = [all] { return all->samples(); };
  const Picture followed = all->validation.picture(0);
  task.followed = {.inputs = {{"pixel_values", all->reader(std::span(&followed, 1))}}, .picture = all->reader.prepared(followed)};
  task.first_samples = [all] { return all->first_samples(); };
  task.save_beside = [all](const Path& beside) { write_json(beside / "preprocessor_config.json", all->preprocessing); };
  return task;
}

}  // namespace

TaskKind classify_kind() {
  return {.name = "classify",
          .summary = "Pictures into classes, with a vision transformer",
          .preset = "vit-tiny",
          .families = {"vit", "resnet"},
          .examples = {"data=shapes epochs=5", "data=cifar10 preset=vit-small pad=4 flip=true epochs=30",
                       "data=photos from=vit-base-folder rate=1e-4"},
          .declare = [](Settings& settings) {
            const auto options = std::make_shared<ClassifyOptions>();
            settings.heading("Pictures");
            settings.add("data", options->data, "Folder with CIFAR, IDX or a folder of pictures per class; shapes: made by rule",
                         {.path = true, .made = {"shapes"}});
            settings.add("limit", options->limit, "Learn from so many pictures; 0: all", {.least = 0});
            settings.add("pad", options->augment.pad, "Crops from pictures with so many pixels around", {.least = 0, .most = 1000});
            settings.add("flip", options->augment.flip, "Flip left and right by chance");
            settings.add("resized_crop", options->augment.resized_crop, "Parts of at least this share of the area; 1: whole pictures",
                         {.least = 0.01, .most = 1});
            settings.add("colour", options->augment.colour, "Change of brightness, contrast and saturation", {.least = 0, .most = 1});
            settings.add("random_ops", options->augment.random_ops, "Operations of RandAugment for each picture", {.least = 0, .most = 10});
            settings.add("random_strength", options->augment.random_strength, "Their strength", {.least = 0, .most = 1});
            settings.add("erase", options->augment.erase, "Probability that a rectangle is erased", {.least = 0, .most = 1});
            settings.add("mixup", options->mixing.mixup, "Alpha of mixup; 0: none", {.least = 0, .most = 100});
            settings.add("cutmix", options->mixing.cutmix, "Alpha of cutmix; 0: none", {.least = 0, .most = 100});
            return [options](const Chosen& chosen) { return make_task(*options, chosen); };
          }};
}

}  // namespace heed
