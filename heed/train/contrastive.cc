// Images and texts compared (Radford et al. 2021): two encoders learn which caption belongs to which image of a batch.
#include <algorithm>

#include "heed/models/cost.h"
#include "heed/models/inspect.h"
#include "heed/train/caption_data.h"
#include "heed/train/labels.h"
#include "heed/train/padded_rows.h"
#include "heed/train/retrieval.h"

namespace heed {
namespace {

constexpr int64_t kUsualCaption = 16;  // tokens, to count the cost of a sample

// State shared by the task's functions.
struct Contrastive {
  CaptionParts parts;
  TaskTokenizer tokenizer;
  TrainOptions train_options;
  std::shared_ptr<Model> model;
  int64_t max_length;
  double multiply_adds;  // of one image with its caption

  Batch batch(int64_t epoch, const std::vector<int64_t>& which) const {
    const int64_t pad = tokenizer.tokenizer.padding_id().value_or(0);
    return {.inputs = {{"pixel_values", parts.augmented_pixels(which, train_options.seed, epoch)},
                       {"input_ids", padded_rows(parts.train.tokens, which, pad)},
                       {"attention_mask", padding_mask(parts.train.tokens, which)}},
            .samples = std::ssize(which)};
  }

  StepOutput forward(const Batch& batch, ForwardOptions forward_options) const {
    forward_options.loss_only = true;
    forward_options.label_smoothing = train_options.label_smoothing;
    return {.loss = (*model)(batch.inputs, forward_options).at("loss"),
            .multiply_adds = multiply_adds * static_cast<double>(batch.samples)};
  }

  Retrieval encoded(const CaptionPart& part) const {
    return encode_for_retrieval(*model, tokenizer.tokenizer, *parts.reader, part.data, max_length);
  }

  std::vector<Sample> samples() const {
    const CaptionPart& part = parts.test.count() > 0 ? parts.test : parts.validation;
    const Retrieval all = encoded(part);
    return pick_right_and_wrong(CaptionParts::one_caption_each(part), [&](int64_t c) {
      const int64_t image = part.data.image_of[static_cast<size_t>(c)];
      Sample sample{.truth = part.data.captions[static_cast<size_t>(c)], .image = part.data.images.image(image)};
      score_sample(sample, all.text_probabilities(image), all.captions);
      for (size_t other = 0; other < all.image_of.size(); ++other)  // an image may have several captions
        if (all.image_of[other] == image && part.data.captions[other] == sample.guess) sample.right = true;
      set_patch_map(sample, *model,
                    (*model)({{"pixel_values", parts.reader->normalized(std::span(&sample.image, 1))}}, {.attentions = has_maps(*model)}));
      return sample;
    });
  }

  std::vector<Sample> first_samples() const {
    constexpr int64_t shown = 40;
    std::vector<Sample> out;
    const Batches batches = shuffled_batches(parts.train.count(), shown, train_options.seed, 0);
    for (const int64_t c : batches[0])
      out.push_back({.truth = parts.train.data.captions[static_cast<size_t>(c)],
                     .image = augmented(parts.train.data.images.image(parts.train.data.image_of[static_cast<size_t>(c)]), parts.augment,
                                        sample_key(train_options.seed, 0, c))});
    return out;
  }
};

// The end token selects the state that represents a text.
void set_text_vocabulary(Json& config, const Tokenizer& tokenizer) {
  config["vocab_size"] = tokenizer.id_limit();
  config["pad_token_id"] = tokenizer.padding_id().value_or(0);
  if (const std::optional<int32_t> id = end_token(tokenizer)) config["eos_token_id"] = *id;
}

Task make_contrastive_task(CaptionOptions& options, const JobOptions& chosen) {
  check<UsageError>(chosen.train_options.batch > 1, "contrastive: found batch=1, which has nothing to compare, expected 2 or more");
  Json config = chosen.from.empty() ? model_config(chosen.model) : config_from(chosen.from, ModelTask::image_text_matching);
  CaptionParts parts = read_caption_parts(options, chosen, config);
  const Config whole(config, "config.json");
  const ImageSize size = size_in_config(image_config(architecture_of(whole), whole).json());
  check<UsageError>(size.width == size.height, "train: image=", text_of(size),
                    ", but CLIP takes square images only, expected for example image=", std::min(size.width, size.height));
  TaskTokenizer tokenizer = tokenizer_for(chosen, options.vocabulary, parts.train.data.captions, true);
  if (chosen.from.empty()) set_text_vocabulary(config["text_config"], tokenizer.tokenizer);
  const auto model = model_for(chosen, config);
  const int64_t limit = max_tokens(*model), max_length = options.max_length > 0 ? std::min(options.max_length, limit) : limit;
  encode_captions(parts, tokenizer.tokenizer, max_length);
  const double multiply_adds =
      static_cast<double>(cost_of(*model, {.batch = 1, .tokens = std::min(kUsualCaption, limit)}).total.training_multiply_adds);
  const auto all = std::make_shared<Contrastive>(Contrastive{.parts = std::move(parts),
                                                             .tokenizer = std::move(tokenizer),
                                                             .train_options = chosen.train_options,
                                                             .model = model,
                                                             .max_length = max_length,
                                                             .multiply_adds = multiply_adds});
  Task task{.name = "contrastive", .model = model, .metric = "image_to_text_accuracy", .notes = all->parts.notes};
  add_parts(task, all->parts);
  task.batches = [all](int64_t epoch) {
    return shuffled_batches(all->parts.train.count(), all->train_options.batch, all->train_options.seed, epoch);
  };
  task.batch = [all](int64_t epoch, const std::vector<int64_t>& which) { return all->batch(epoch, which); };
  task.forward = [all](const Batch& batch, const ForwardOptions& forward_options) { return all->forward(batch, forward_options); };
  task.compares_samples = true;
  task.evaluate = [all] { return all->encoded(all->parts.validation).evaluation(); };
  if (all->parts.test.count() > 0) task.test = [all] { return all->encoded(all->parts.test).evaluation(); };
  task.samples = [all] { return all->samples(); };
  const Image tracked = all->parts.validation.data.images.image(0);
  task.tracked = {.inputs = {{"pixel_values", all->parts.reader->normalized(std::span(&tracked, 1))}}, .image = tracked};
  task.first_samples = [all] { return all->first_samples(); };
  task.save_preprocessing = [all](const Path& folder) {
    all->tokenizer.save(folder);
    write_json(folder / "preprocessor_config.json", all->parts.preprocessing);
  };
  return task;
}

}  // namespace

TaskKind contrastive_kind() {
  return {.name = "contrastive",
          .summary = "Two encoders, of images and of texts, that learn which caption belongs to which image (CLIP)",
          .preset = "clip-tiny",
          .families = {"clip"},
          .examples = {"data=scenes epochs=10", "data=photos/captions.csv image_column=file caption_column=caption batch=128",
                       "data=photos from=clip rate=1e-5"},
          .declare = [](Settings& settings) {
            const auto options = std::make_shared<CaptionOptions>();
            declare(settings, *options);
            return [options, &settings](const JobOptions& chosen) {
              check_image_settings(settings, chosen);
              return make_contrastive_task(*options, chosen);
            };
          }};
}

}  // namespace heed
