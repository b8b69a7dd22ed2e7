// Image classification.
#include "heed/core/parallel.h"
#include "heed/cuda/runtime.h"
#include "heed/dist/split_work.h"
#include "heed/io/paths.h"
#include "heed/models/config.h"
#include "heed/models/cost.h"
#include "heed/models/image_processor.h"
#include "heed/models/inspect.h"
#include "heed/train/batch_order.h"
#include "heed/train/data_fingerprint.h"
#include "heed/train/image_batches.h"
#include "heed/train/image_parts.h"
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

// A part that is evaluated.
struct EvaluatedImages {
  ImageData data;  // resized
  std::optional<DeviceImages> on_device = {};

  // Normalized: (B, C, Y, X)
  Tensor pixels(const ImageProcessor& reader, std::span<const int64_t> which) const {
    if (on_device) return on_device->pixels(Tensor::from(which, {std::ssize(which)}, kCpu));
    std::vector<Image> images(which.size());
    parallel_tasks(std::ssize(which), [&](int64_t b) { images[static_cast<size_t>(b)] = data.image(which[static_cast<size_t>(b)]); });
    return reader.normalized(images);
  }
  std::vector<int64_t> labels(std::span<const int64_t> which) const {
    std::vector<int64_t> out;
    for (const int64_t i : which) out.push_back(data.labels[static_cast<size_t>(i)]);
    return out;
  }
};

// State shared by the task's functions.
struct Images {
  ImageBatches train;
  EvaluatedImages validation, test;
  Json preprocessing;
  ImageProcessor reader;
  TrainOptions train_options;
  std::shared_ptr<Model> model;
  double multiply_adds;  // of one image

  StepOutput forward(const Batch& batch, ForwardOptions forward_options) const {
    forward_options.loss_only = true;
    forward_options.label_smoothing = train_options.label_smoothing;
    const TensorMap inputs = train.model_inputs(batch), out = (*model)(inputs, forward_options);
    const Tensor& logits = out.at("logits");
    return {.loss = ImageBatches::mixed_loss(batch, out.at("loss"), logits, train_options.label_smoothing),
            .metrics = {{"accuracy", accuracy_of(logits, inputs.at("labels"))}},
            .multiply_adds = multiply_adds * static_cast<double>(batch.samples)};
  }

  Evaluation evaluate(const EvaluatedImages& part) const {
    ClassScores scores(part.data.classes);
    const Batches batches = batches_in_order(part.data.count(), kEvaluationBatch);
    split_work(
        world(), std::ssize(batches),
        [&](int64_t i) {
          const Tensor logits = (*model)({{"pixel_values", part.pixels(reader, batches[static_cast<size_t>(i)])}}).at("logits");
          return bytes_of_numbers(logits.to_vector<float>());
        },
        [&](int64_t i, const std::string& logits) { scores.add(numbers_in<float>(logits), part.labels(batches[static_cast<size_t>(i)])); });
    return scores.evaluation();
  }

  Sample explain(const ImageData& data, int64_t i) const {
    const Image image = data.image(i);
    const TensorMap out = (*model)({{"pixel_values", reader.normalized(std::span(&image, 1))}}, {.attentions = has_maps(*model)});
    Sample sample{.truth = data.classes[static_cast<size_t>(data.labels[static_cast<size_t>(i)])], .image = image};
    score_sample(sample, softmax(out.at("logits")).to_vector<float>(), data.classes);
    set_patch_map(sample, *model, out);
    return sample;
  }

  std::vector<Sample> samples() const {
    return pick_right_and_wrong(class_round_robin(shown().labels), [&](int64_t i) { return explain(shown(), i); });
  }
  // Augmented images of the first epoch.
  std::vector<Sample> first_samples() const {
    std::vector<Sample> out;
    const ImageData& data = train.data();
    const auto batches = shuffled_batches(data.count(), kFirstSamples, train_options.seed, 0);
    for (const int64_t i : batches[0])
      out.push_back(
          {.truth = data.classes[static_cast<size_t>(data.labels[static_cast<size_t>(i)])], .image = train.augmented_image(0, i)});
    return out;
  }
  const ImageData& shown() const { return test.data.count() > 0 ? test.data : validation.data; }
};

ImageData image_part(const ClassifyOptions& options, DataPart part) {
  ImageData data = read_images(options.data, part);
  if (part != DataPart::train || options.limit == 0 || data.count() <= options.limit) return data;
  // Strided, as files are often sorted by class.
  std::vector<int64_t> which;
  for (int64_t i = 0; i < options.limit; ++i) which.push_back(i * data.count() / options.limit);
  return chosen(std::move(data), which);
}

// Copies the images to the GPU for training, unless they need more than a quarter of its free memory.
void keep_on_device(Images& images, Device device, std::vector<std::string>& notes) {
  if (device == kCpu) return;
  int64_t left = cuda::device_info(device.index).free_memory / 4;
  images.train.copy_to(device, left);
  if (!images.train.on_device()) return;
  left -= images.train.on_device()->bytes();
  for (EvaluatedImages* part : {&images.validation, &images.test}) {
    part->on_device = DeviceImages::copied(part->data, images.reader.byte_values(), device, left);
    if (part->on_device) left -= part->on_device->bytes();
  }
  notes.push_back("the images are kept in the memory of " + name_of(device));
}

Task make_classify_task(ClassifyOptions& options, const JobOptions& chosen) {
  ImageData train = image_part(options, DataPart::train), validation = image_part(options, DataPart::validation),
            test = image_part(options, DataPart::test);
  check<FileError>(train.count() > 0, options.data, ": found no images to train on");
  check<FileError>(train.classes.size() > 1, options.data, ": found 1 class, ", in_quotes(train.classes.front()),
                   ", expected at least two: a folder of images for each");
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
  const bool decoded = decode_parts({&train, &validation, &test}, resizer, options.data, options.skip_bad, chosen, task.notes);
  check<FileError>(train.count() > 0, options.data, ": found no readable images to train on");
  if (validation.count() == 0) {
    Split parts = split(train.count(), std::max(chosen.train_options.validation, 1e-6f), chosen.train_options.seed);
    validation = heed::chosen(train, parts.held_out);
    train = heed::chosen(std::move(train), parts.kept);
    check<FileError>(train.count() > 0, options.data, ": found one image, which is held out for validation; expected more");
  }
  fit_positions(*model, train.image(0));
  Json preprocessing = inputs.preprocessing;
  if (!inputs.complete) preprocessing.update(colour_keys(train, model_images(Config(model->config(), "config.json")).channels));
  const double multiply_adds = static_cast<double>(cost_of(*model).total.training_multiply_adds);
  const ImageProcessor reader = reader_for(preprocessing);
  task.counts = {{"train", train.count()}, {"validation", validation.count()}, {"test", test.count()}};
  task.data = {{"train", fingerprint_of(train)}, {"validation", fingerprint_of(validation)}, {"test", fingerprint_of(test)}};
  const TrainOptions& train_options = chosen.train_options;
  const auto all =
      std::make_shared<Images>(Images{.train = ImageBatches(std::move(train), reader, options.augment, options.mixing, train_options.seed),
                                      .validation = {std::move(validation)},
                                      .test = {std::move(test)},
                                      .preprocessing = preprocessing,
                                      .reader = reader,
                                      .train_options = train_options,
                                      .model = model,
                                      .multiply_adds = multiply_adds});
  if (decoded) keep_on_device(*all, model->device(), task.notes);
  task.batches = [all](int64_t epoch) {
    return shuffled_batches(all->train.data().count(), all->train_options.batch, all->train_options.seed, epoch);
  };
  task.batch = [all](int64_t epoch, const std::vector<int64_t>& which) { return all->train.batch(epoch, which); };
  task.model_inputs = [all](const Batch& batch) { return all->train.model_inputs(batch); };
  task.forward = [all](const Batch& batch, const ForwardOptions& forward_options) { return all->forward(batch, forward_options); };
  task.evaluate = [all] { return all->evaluate(all->validation); };
  if (all->test.data.count() > 0) task.test = [all] { return all->evaluate(all->test); };
  task.samples = [all] { return all->samples(); };
  const Image tracked = all->validation.data.image(0);
  task.tracked = {.inputs = {{"pixel_values", all->reader.normalized(std::span(&tracked, 1))}}, .image = tracked};
  task.first_samples = [all] { return all->first_samples(); };
  task.save_preprocessing = [all](const Path& folder) { write_json(folder / "preprocessor_config.json", all->preprocessing); };
  return task;
}

}  // namespace

TaskKind classify_kind() {
  return {.name = "classify",
          .summary = "Image classification with a vision transformer or a ResNet",
          .preset = "vit-tiny",
          .families = {"vit", "resnet"},
          .examples = {"data=shapes epochs=5", "data=cifar10 preset=vit-small pad=4 flip=true epochs=30",
                       "data=photos from=vit-base-folder rate=1e-4"},
          .declare =
              [](Settings& settings) {
                const auto options = std::make_shared<ClassifyOptions>();
                settings.heading("Images");
                settings.add("data", options->data,
                             "Folder with CIFAR or IDX files or one folder of image files per class; shapes: synthetic",
                             {.path = true, .synthetic = {"shapes"}});
                declare(settings, options->image);
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
                  check_image_settings(settings, chosen);
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
