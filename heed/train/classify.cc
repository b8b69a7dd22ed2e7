// Classification of pictures: a vision transformer learns to name them.
#include "heed/core/memory_limit.h"
#include "heed/core/parallel.h"
#include "heed/data/augment.h"
#include "heed/data/decoded.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"
#include "heed/models/config.h"
#include "heed/models/cost.h"
#include "heed/models/inspect.h"
#include "heed/models/pictures.h"
#include "heed/train/data_print.h"
#include "heed/train/image_size.h"
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
  bool skip_bad = false;
  ImageOptions image = {};
  AugmentOptions augment = {};
  Mixing mixing = {};
};

// Everything that the functions of the task share.
struct Pictures {
  PictureData train, validation, test;  // as the model sees them: resized
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
    return reader.normalized(pictures);
  }
  static std::vector<int64_t> labels(const PictureData& data, std::span<const int64_t> which) {
    std::vector<int64_t> out;
    for (const int64_t i : which) out.push_back(data.labels[static_cast<size_t>(i)]);
    return out;
  }

  Batch batch(int64_t epoch, const std::vector<int64_t>& which) const {
    std::vector<Picture> pictures;
    for (const int64_t i : which) pictures.push_back(augmented(train.picture(i), augment, sample_key(learn.seed, epoch, i)));
    const Mixed mix = mixed(reader.normalized(pictures), mixing, sample_key(learn.seed + 1, epoch, which[0]));
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
    const Named out = (*model)({{"pixel_values", reader.normalized(std::span(&picture, 1))}}, {.attentions = has_maps(*model)});
    Sample sample{.truth = data.classes[static_cast<size_t>(data.labels[static_cast<size_t>(i)])], .picture = picture};
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
                     .picture = augmented(train.picture(i), augment, sample_key(learn.seed, 0, i))});
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

// Decodes the image files of all parts once. Those that cannot be read end the run, or are left out.
void decode_parts(const std::vector<PictureData*>& parts, const std::shared_ptr<const PictureReader>& reader,
                  const ClassifyOptions& options, const Chosen& chosen, std::vector<std::string>& notes) {
  int64_t all = 0, done = 0, left = memory_limit() / 4;
  for (const PictureData* part : parts) all += part->files ? part->count() : 0;
  std::vector<std::string> bad;
  bool again = false;
  for (PictureData* part : parts) {
    notes.insert(notes.end(), part->notes.begin(), part->notes.end());
    Decoded decoded = decode_all(std::move(*part), {.prepare = [reader](const Picture& picture) { return reader->prepared(picture); },
                                                    .most_bytes = left,
                                                    .done =
                                                        [&](int64_t more) {
                                                          done += more;
                                                          if (chosen.reading) chosen.reading(done, all);
                                                        }});
    left -= decoded.bytes;
    again = again || (decoded.data.files && decoded.data.count() > 0 && decoded.bytes == 0);
    bad.insert(bad.end(), decoded.bad.begin(), decoded.bad.end());
    *part = std::move(decoded.data);
  }
  if (again) notes.push_back("the resized images do not fit into a quarter of the memory: every epoch decodes the files again");
  if (bad.empty()) return;
  const std::string count = std::to_string(bad.size()) + " of " + std::to_string(all) + " images cannot be read";
  check<FileError>(options.skip_bad, printable(options.data), ": ", count, ":", listed_lines(bad),
                   "\n  Remove or replace them, or train without them: skip_bad=true");
  notes.push_back(count + " and are left out (skip_bad=true):" + listed_lines(bad));
}

Task make_task(ClassifyOptions& options, const Chosen& chosen) {
  PictureData train = part_of(options, DataPart::train), validation = part_of(options, DataPart::validation),
              test = part_of(options, DataPart::test);
  check<FileError>(train.count() > 0, options.data, ": no pictures to learn from");
  Json config = chosen.from.empty() ? model_config(chosen.model) : read_json(Path(chosen.from) / "config.json");
  set_labels(config, train.classes);
  ImageInputs inputs = choose_image_size(options.image, chosen, train, config);
  if (const Path kept = Path(chosen.keep) / "preprocessor_config.json"; !chosen.keep.empty() && path_exists(kept))
    inputs.preprocessing = read_json(kept), inputs.complete = true;
  auto model = model_for(chosen, config, {"classifier", "pooler"});
  const auto reader_for = [type = config.value("model_type", "vit")](const Json& keys) {
    return PictureReader(Config(keys, "preprocessor_config.json"), type);
  };
  const auto resizer = std::make_shared<const PictureReader>(reader_for(inputs.preprocessing));
  Task task{.name = "classify", .model = model};
  task.notes.push_back("images: " + resizer->description() + " pixels (width x height)" + (inputs.why.empty() ? "" : ", ") + inputs.why);
  decode_parts({&train, &validation, &test}, resizer, options, chosen, task.notes);
  check<FileError>(train.count() > 0, options.data, ": no pictures to learn from, as none can be read");
  if (validation.count() == 0) {
    Split parts = split(train.count(), std::max(chosen.learn.validation, 1e-6f), chosen.learn.seed);
    validation = heed::chosen(train, parts.held_out);
    train = heed::chosen(std::move(train), parts.kept);
    check<FileError>(train.count() > 0, options.data, ": no pictures to learn from, as the only one is kept out for validation");
  }
  Json preprocessing = inputs.preprocessing;
  if (!inputs.complete) preprocessing.update(colour_keys(train));
  const double multiply_adds = static_cast<double>(cost_of(*model).total.multiply_adds);
  const auto all = std::make_shared<Pictures>(Pictures{.train = std::move(train),
                                                       .validation = std::move(validation),
                                                       .test = std::move(test),
                                                       .preprocessing = preprocessing,
                                                       .reader = reader_for(preprocessing),
                                                       .augment = options.augment,
                                                       .mixing = options.mixing,
                                                       .learn = chosen.learn,
                                                       .model = model,
                                                       .multiply_adds = multiply_adds});
  task.counts = {{"train", all->train.count()}, {"validation", all->validation.count()}, {"test", all->test.count()}};
  task.data = {{"train", print_of(all->train)}, {"validation", print_of(all->validation)}, {"test", print_of(all->test)}};
  task.batches = [all](int64_t epoch) { return shuffled_batches(all->train.count(), all->learn.batch, all->learn.seed, epoch); };
  task.batch = [all](int64_t epoch, const std::vector<int64_t>& which) { return all->batch(epoch, which); };
  task.learn = [all](const Batch& batch, const Ask& ask) { return all->learn_from(batch, ask); };
  task.evaluate = [all] { return all->evaluate(all->validation); };
  if (all->test.count() > 0) task.test = [all] { return all->evaluate(all->test); };
  task.samples = [all] { return all->samples(); };
  const Picture followed = all->validation.picture(0);
  task.followed = {.inputs = {{"pixel_values", all->reader.normalized(std::span(&followed, 1))}}, .picture = followed};
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
          .declare =
              [](Settings& settings) {
                const auto options = std::make_shared<ClassifyOptions>();
                settings.heading("Pictures");
                settings.add("data", options->data, "Folder with CIFAR, IDX or a folder of image files per class; shapes: made by rule",
                             {.path = true, .made = {"shapes"}});
                settings.add(
                    "image", options->image.image,
                    "Size of the model's images in pixels: a side such as 64, or WIDTHxHEIGHT such as 96x64; auto: chosen from the data; "
                    "model: as the preset or `from` has it");
                settings.add(
                    "resize", options->image.resize,
                    "How images become that size. crop: shorter side, then the centre; squash: changes their shape; pad: black borders; "
                    "model: as `from` does it",
                    {.words = {"crop", "squash", "pad", "model"}});
                settings.add("skip_bad", options->skip_bad, "Train without the image files that cannot be read; false: they end the run");
                settings.add("limit", options->limit, "Learn from so many pictures; 0: all", {.least = 0});
                settings.add("pad", options->augment.pad, "Crops from pictures with so many pixels around", {.least = 0, .most = 1000});
                settings.add("flip", options->augment.flip, "Flip left and right by chance");
                settings.add("resized_crop", options->augment.resized_crop, "Parts of at least this share of the area; 1: whole pictures",
                             {.least = 0.01, .most = 1});
                settings.add("colour", options->augment.colour, "Change of brightness, contrast and saturation", {.least = 0, .most = 1});
                settings.add("random_ops", options->augment.random_ops, "Operations of RandAugment for each picture",
                             {.least = 0, .most = 10});
                settings.add("random_strength", options->augment.random_strength, "Their strength", {.least = 0, .most = 1});
                settings.add("erase", options->augment.erase, "Probability that a rectangle is erased", {.least = 0, .most = 1});
                settings.add("mixup", options->mixing.mixup, "Alpha of mixup; 0: none", {.least = 0, .most = 100});
                settings.add("cutmix", options->mixing.cutmix, "Alpha of cutmix; 0: none", {.least = 0, .most = 100});
                return [options, &settings](const Chosen& chosen) {
                  const bool from = !chosen.from.empty();
                  const auto own = [&](const char* key) {
                    return settings.given(key) && settings.text(key) != "auto" && settings.text(key) != "model";
                  };
                  for (const char* key : {"image", "resize"})
                    check<UsageError>(!from || !own(key), "train: ", key, "=", settings.text(key), " beside from=", chosen.from,
                                      ": its images are as its preprocessor_config.json says; leave ", key, " out");
                  check<UsageError>(from || settings.text("resize") != "model",
                                    "train: resize=model without from=, expected crop, squash or pad");
                  return make_task(*options, chosen);
                };
              },
          .resume_older =
              [](Settings& settings) {
                if (settings.text("image") != "auto") return;  // its config.toml has the size
                settings.set("image", "model");
                settings.set("resize", settings.text("from").empty() ? "squash" : "model");
              }};
}

}  // namespace heed
