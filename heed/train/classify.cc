// Image classification.
#include "heed/core/memory_limit.h"
#include "heed/core/parallel.h"
#include "heed/data/augment.h"
#include "heed/data/decoded.h"
#include "heed/dist/split_work.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"
#include "heed/models/config.h"
#include "heed/models/cost.h"
#include "heed/models/image_processor.h"
#include "heed/models/inspect.h"
#include "heed/train/batch_order.h"
#include "heed/train/data_fingerprint.h"
#include "heed/train/image_size.h"
#include "heed/train/labels.h"
#include "heed/train/scores.h"
#include "heed/train/tasks.h"

namespace heed {
namespace {

constexpr int64_t kEvaluationBatch = 128, kFirstSamples = 40;

struct ClassifyOptions {
  std::string data = "shapes";
  int64_t limit = 0;
  bool skip_bad = false;
  ImageOptions image = {};
  AugmentOptions augment = {};
  MixOptions mixing = {};
};

// State shared by the task's functions.
struct Images {
  ImageData train, validation, test;  // resized
  Json preprocessing;
  ImageProcessor reader;
  AugmentOptions augment;
  MixOptions mixing;
  TrainOptions train_options;
  std::shared_ptr<Model> model;
  double multiply_adds;  // of one image

  Tensor pixels(const ImageData& data, std::span<const int64_t> which) const {  // (B, C, Y, X)
    std::vector<Image> images(which.size());
    parallel_tasks(std::ssize(which), [&](int64_t b) { images[static_cast<size_t>(b)] = data.image(which[static_cast<size_t>(b)]); });
    return reader.normalized(images);
  }
  static std::vector<int64_t> labels(const ImageData& data, std::span<const int64_t> which) {
    std::vector<int64_t> out;
    for (const int64_t i : which) out.push_back(data.labels[static_cast<size_t>(i)]);
    return out;
  }

  Batch batch(int64_t epoch, const std::vector<int64_t>& which) const {
    std::vector<Image> images;
    for (const int64_t i : which) images.push_back(augmented(train.image(i), augment, sample_key(train_options.seed, epoch, i)));
    const MixedBatch mix = mixed(reader.normalized(images), mixing, sample_key(train_options.seed + 1, epoch, which[0]));
    const std::vector<int64_t> own = labels(train, which);
    Batch out{.inputs = {{"pixel_values", mix.pixels}, {"labels", Tensor::from(own, {std::ssize(own)}, kCpu)}},
              .samples = std::ssize(which)};
    out.same_work = mix.other.empty();
    if (out.same_work) return out;
    std::vector<int64_t> others;
    for (const int64_t other : mix.other) others.push_back(own[static_cast<size_t>(other)]);
    out.inputs["other_labels"] = Tensor::from(others, {std::ssize(others)}, kCpu);
    out.extra = {mix.share};
    return out;
  }

  StepOutput forward(const Batch& batch, ForwardOptions forward_options) const {
    forward_options.loss_only = true;
    forward_options.label_smoothing = train_options.label_smoothing;
    const TensorMap out =
        (*model)({{"pixel_values", batch.inputs.at("pixel_values")}, {"labels", batch.inputs.at("labels")}}, forward_options);
    const Tensor& logits = out.at("logits");
    Tensor loss = out.at("loss");
    if (!batch.extra.empty()) {
      CrossEntropy options;
      options.label_smoothing = train_options.label_smoothing;
      const auto share = static_cast<float>(batch.extra[0]);
      loss = loss * share + cross_entropy(logits, batch.inputs.at("other_labels").to(logits.device()), options) * (1 - share);
    }
    return {.loss = loss,
            .metrics = {{"accuracy", accuracy_of(logits, batch.inputs.at("labels"))}},
            .multiply_adds = multiply_adds * static_cast<double>(batch.samples)};
  }

  Evaluation evaluate(const ImageData& data) const {
    ClassScores scores(data.classes);
    const Batches batches = batches_in_order(data.count(), kEvaluationBatch);
    split_work(
        world(), std::ssize(batches),
        [&](int64_t i) {
          const Tensor logits = (*model)({{"pixel_values", pixels(data, batches[static_cast<size_t>(i)])}}).at("logits");
          return bytes_of_numbers(logits.to_vector<float>());
        },
        [&](int64_t i, const std::string& logits) {
          scores.add(numbers_in<float>(logits), labels(data, batches[static_cast<size_t>(i)]));
        });
    return scores.evaluation();
  }

  Sample explain(const ImageData& data, int64_t i) const {
    const Image image = data.image(i);
    const TensorMap out = (*model)({{"pixel_values", reader.normalized(std::span(&image, 1))}}, {.attentions = has_maps(*model)});
    Sample sample{.truth = data.classes[static_cast<size_t>(data.labels[static_cast<size_t>(i)])], .image = image};
    score_sample(sample, softmax(out.at("logits")).to_vector<float>(), data.classes);
    if (!out.contains("attentions.0")) return sample;
    const auto [rows, columns] = patch_grid(*model, sample.image);
    const Tensor& map = out.at("attentions.0");                                     // (1, H, N, M)
    if (map.size(2) != map.size(3) || map.size(2) < rows * columns) return sample;  // keys are not patches, e.g. with pooled attention
    sample.map_rows = rows;
    sample.map_columns = columns;
    sample.map = patches_seen(rollout(out, "attentions."), map.size(2), rows * columns);
    float total = 0;
    for (const float weight : sample.map) total += weight;
    for (float& weight : sample.map) weight /= total;
    return sample;
  }

  std::vector<Sample> samples() const {
    return pick_right_and_wrong(class_round_robin(shown().labels), [&](int64_t i) { return explain(shown(), i); });
  }
  // Augmented images of the first epoch.
  std::vector<Sample> first_samples() const {
    std::vector<Sample> out;
    const auto batches = shuffled_batches(train.count(), kFirstSamples, train_options.seed, 0);
    for (const int64_t i : batches[0])
      out.push_back({.truth = train.classes[static_cast<size_t>(train.labels[static_cast<size_t>(i)])],
                     .image = augmented(train.image(i), augment, sample_key(train_options.seed, 0, i))});
    return out;
  }
  const ImageData& shown() const { return test.count() > 0 ? test : validation; }
};

ImageData image_part(const ClassifyOptions& options, DataPart part) {
  ImageData data = read_images(options.data, part);
  if (part != DataPart::train || options.limit == 0 || data.count() <= options.limit) return data;
  // Strided, as files are often sorted by class.
  std::vector<int64_t> which;
  for (int64_t i = 0; i < options.limit; ++i) which.push_back(i * data.count() / options.limit);
  return chosen(std::move(data), which);
}

// Decodes the image files of all parts once. Unreadable files are an error, or skipped with skip_bad.
void decode_parts(const std::vector<ImageData*>& parts, const std::shared_ptr<const ImageProcessor>& reader, const ClassifyOptions& options,
                  const JobOptions& chosen, std::vector<std::string>& notes) {
  int64_t all = 0, done = 0, left = memory_limit() / 4;
  for (const ImageData* part : parts) all += part->files ? part->count() : 0;
  std::vector<std::string> bad;
  bool again = false;
  for (ImageData* part : parts) {
    notes.insert(notes.end(), part->notes.begin(), part->notes.end());
    DecodedImages decoded = decode_images(std::move(*part), {.prepare = [reader](const Image& image) { return reader->prepared(image); },
                                                             .max_bytes = left,
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
  if (again) notes.push_back("the resized images do not fit into a quarter of the memory, so every epoch decodes the files again");
  if (bad.empty()) return;
  const std::string count = std::to_string(bad.size()) + " of " + std::to_string(all) + " images cannot be read";
  check<FileError>(options.skip_bad, printable(options.data), ": ", count, ":", listed_lines(bad),
                   "\n  Remove or replace them, or train without them: skip_bad=true");
  notes.push_back(count + " and are left out (skip_bad=true):" + listed_lines(bad));
}

Task make_classify_task(ClassifyOptions& options, const JobOptions& chosen) {
  ImageData train = image_part(options, DataPart::train), validation = image_part(options, DataPart::validation),
            test = image_part(options, DataPart::test);
  check<FileError>(train.count() > 0, options.data, ": found no images to train on");
  Json config = chosen.from.empty() ? model_config(chosen.model) : config_from(chosen.from, ModelTask::image_classification);
  set_labels(config, train.classes);
  ImageInputs inputs = choose_image_size(options.image, chosen, train, config);
  if (const Path kept = Path(chosen.keep) / "preprocessor_config.json"; !chosen.keep.empty() && path_exists(kept))
    inputs.preprocessing = read_json(kept), inputs.complete = true;
  auto model = model_for(chosen, config);
  const auto reader_for = [images = model_images(Config(model->config(), "config.json"))](const Json& keys) {
    return ImageProcessor(Config(keys, "preprocessor_config.json"), images);
  };
  const auto resizer = std::make_shared<const ImageProcessor>(reader_for(inputs.preprocessing));
  Task task{.name = "classify", .model = model};
  task.notes.push_back("images: " + resizer->description() + " pixels (width x height)" + (inputs.why.empty() ? "" : ", ") + inputs.why);
  decode_parts({&train, &validation, &test}, resizer, options, chosen, task.notes);
  check<FileError>(train.count() > 0, options.data, ": found no readable images to train on");
  if (validation.count() == 0) {
    Split parts = split(train.count(), std::max(chosen.train_options.validation, 1e-6f), chosen.train_options.seed);
    validation = heed::chosen(train, parts.held_out);
    train = heed::chosen(std::move(train), parts.kept);
    check<FileError>(train.count() > 0, options.data, ": found one image, which is held out for validation; expected more");
  }
  Json preprocessing = inputs.preprocessing;
  if (!inputs.complete) preprocessing.update(colour_keys(train, model_images(Config(model->config(), "config.json")).channels));
  const double multiply_adds = static_cast<double>(cost_of(*model).total.training_multiply_adds);
  const auto all = std::make_shared<Images>(Images{.train = std::move(train),
                                                   .validation = std::move(validation),
                                                   .test = std::move(test),
                                                   .preprocessing = preprocessing,
                                                   .reader = reader_for(preprocessing),
                                                   .augment = options.augment,
                                                   .mixing = options.mixing,
                                                   .train_options = chosen.train_options,
                                                   .model = model,
                                                   .multiply_adds = multiply_adds});
  task.counts = {{"train", all->train.count()}, {"validation", all->validation.count()}, {"test", all->test.count()}};
  task.data = {{"train", fingerprint_of(all->train)}, {"validation", fingerprint_of(all->validation)}, {"test", fingerprint_of(all->test)}};
  task.batches = [all](int64_t epoch) {
    return shuffled_batches(all->train.count(), all->train_options.batch, all->train_options.seed, epoch);
  };
  task.batch = [all](int64_t epoch, const std::vector<int64_t>& which) { return all->batch(epoch, which); };
  task.forward = [all](const Batch& batch, const ForwardOptions& forward_options) { return all->forward(batch, forward_options); };
  task.evaluate = [all] { return all->evaluate(all->validation); };
  if (all->test.count() > 0) task.test = [all] { return all->evaluate(all->test); };
  task.samples = [all] { return all->samples(); };
  const Image tracked = all->validation.image(0);
  task.tracked = {.inputs = {{"pixel_values", all->reader.normalized(std::span(&tracked, 1))}}, .image = tracked};
  task.first_samples = [all] { return all->first_samples(); };
  task.save_preprocessing = [all](const Path& folder) { write_json(folder / "preprocessor_config.json", all->preprocessing); };
  return task;
}

}  // namespace

TaskKind classify_kind() {
  return {
      .name = "classify",
      .summary = "Image classification with a vision transformer or a ResNet",
      .preset = "vit-tiny",
      .families = {"vit", "resnet"},
      .examples = {"data=shapes epochs=5", "data=cifar10 preset=vit-small pad=4 flip=true epochs=30",
                   "data=photos from=vit-base-folder rate=1e-4"},
      .declare =
          [](Settings& settings) {
            const auto options = std::make_shared<ClassifyOptions>();
            settings.heading("Images");
            settings.add("data", options->data, "Folder with CIFAR or IDX files or one folder of image files per class; shapes: synthetic",
                         {.path = true, .synthetic = {"shapes"}});
            settings.add(
                "image", options->image.image,
                "Size of the model's images in pixels: a side such as 64, or WIDTHxHEIGHT such as 96x64; auto: chosen from the data; "
                "model: from the preset or `from`");
            settings.add(
                "resize", options->image.resize,
                "How images are resized. crop: resize the shorter side, centre crop; squash: ignore the aspect ratio; pad: black borders; "
                "model: same as `from`",
                {.choices = {"crop", "squash", "pad", "model"}});
            settings.add("skip_bad", options->skip_bad, "Skip image files that cannot be read; false: they are an error");
            settings.add("limit", options->limit, "Train on this many images; 0: all", {.least = 0});
            settings.add("pad", options->augment.pad, "Random crops after padding by this many pixels", {.least = 0, .most = 1000});
            settings.add("flip", options->augment.flip, "Random horizontal flips");
            settings.add("resized_crop", options->augment.resized_crop,
                         "Random crops of at least this fraction of the area, resized; 1: whole images", {.least = 0.01, .most = 1});
            settings.add("colour", options->augment.colour, "Strength of brightness, contrast and saturation jitter",
                         {.least = 0, .most = 1});
            settings.add("random_ops", options->augment.random_ops, "RandAugment operations per image", {.least = 0, .most = 10});
            settings.add("random_strength", options->augment.random_strength, "Strength of the RandAugment operations",
                         {.least = 0, .most = 1});
            settings.add("erase", options->augment.erase, "Probability of erasing a random rectangle", {.least = 0, .most = 1});
            settings.add("mixup", options->mixing.mixup, "Alpha of mixup; 0: none", {.least = 0, .most = 100});
            settings.add("cutmix", options->mixing.cutmix, "Alpha of cutmix; 0: none", {.least = 0, .most = 100});
            return [options, &settings](const JobOptions& chosen) {
              const bool from = !chosen.from.empty();
              const auto is_explicit = [&](const char* key) {
                return settings.given(key) && settings.text(key) != "auto" && settings.text(key) != "model";
              };
              for (const char* key : {"image", "resize"})
                check<UsageError>(!from || !is_explicit(key), "train: ", key, "=", settings.text(key), " with from=", chosen.from,
                                  ": its preprocessor_config.json defines the images; remove ", key);
              check<UsageError>(from || settings.text("resize") != "model",
                                "train: resize=model without from=, expected crop, squash or pad");
              return make_classify_task(*options, chosen);
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
