// Captions of images: a text decoder that attends to the patches of an image.
#include <cmath>

#include "heed/models/caption.h"
#include "heed/models/cost.h"
#include "heed/models/inspect.h"
#include "heed/train/caption_data.h"
#include "heed/train/caption_scores.h"
#include "heed/train/labels.h"
#include "heed/train/next_token_scores.h"
#include "heed/train/padded_rows.h"

namespace heed {
namespace {

constexpr int64_t kScoredCaptions = 64, kShownCaptions = 16, kTypicalCaption = 16;

struct CaptionTask {
  CaptionParts parts;
  TaskTokenizer tokenizer;
  TrainOptions train_options;
  std::shared_ptr<Model> model;
  GenerationOptions decoding;
  Json generation;       // generation_config.json, if it is not that of the model
  double multiply_adds;  // of one caption

  StepOutput forward(const Batch& batch, ForwardOptions forward_options) const {
    forward_options.loss_only = true;
    forward_options.label_smoothing = train_options.label_smoothing;
    return {.loss = (*model)(batch.inputs, forward_options).at("loss"),
            .multiply_adds = multiply_adds * static_cast<double>(batch.samples)};
  }

  TensorMap inputs(const CaptionPart& part, std::span<const int64_t> which) const {
    return {{"pixel_values", parts.pixels(part, which)}, {"labels", padded_rows(part.tokens, which, kNoLabel)}};
  }

  Evaluation evaluate(const CaptionPart& part) const {
    return evaluate_next_tokens(*model, batches_in_order(part.count(), kScoredCaptions),
                                [&](std::span<const int64_t> which) { return inputs(part, which); });
  }

  Evaluation test_in_detail() const {
    Evaluation out = evaluate(parts.test),
               written = evaluate_captions(*model, tokenizer.tokenizer, *parts.reader, parts.test.data, decoding);
    out.figures.insert(out.figures.end(), written.figures.begin(), written.figures.end());
    out.detail = written.detail;
    return out;
  }

  // Cross-attention of the last layer to the patches, mean over heads and words.
  Sample explain(const CaptionPart& part, int64_t caption) const {
    const Tensor pixels = parts.pixels(part, std::span(&caption, 1));
    const int64_t image = part.data.image_of[static_cast<size_t>(caption)];
    Sample sample{.truth = part.data.captions[static_cast<size_t>(caption)], .image = part.data.images.image(image)};
    const Translated written = write_captions(*model, tokenizer.tokenizer, pixels, decoding)[0];
    sample.guess = written.text;
    for (size_t other = 0; other < part.data.captions.size(); ++other)
      if (part.data.image_of[other] == image && plain_caption(part.data.captions[other]) == plain_caption(sample.guess))
        sample.right = true;
    const std::vector<int64_t> tokens(written.tokens.begin(), written.tokens.end());
    const TensorMap out = (*model)({{"pixel_values", pixels}, {"labels", Tensor::from(tokens, {1, std::ssize(tokens)}, kCpu)}},
                                   {.attentions = has_maps(*model)});
    sample.score = std::exp(-static_cast<double>(out.at("loss").item()) * static_cast<double>(tokens.size()));
    if (!out.contains("cross_attentions.0")) return sample;
    const AttentionMaps maps = maps_in(out, "cross_attentions.", "cross", {});
    const auto [rows, columns] = patch_grid(*model, sample.image);
    if (maps.M < rows * columns) return sample;
    const std::vector<float> mean = maps.mean(maps.layers.size() - 1);
    sample.map_rows = rows;
    sample.map_columns = columns;
    sample.map.assign(static_cast<size_t>(rows * columns), 0);
    float total = 0;
    for (int64_t n = 0; n < maps.N; ++n)
      for (int64_t p = 0; p < rows * columns; ++p) {
        const float weight = mean[static_cast<size_t>(n * maps.M + maps.M - rows * columns + p)];
        sample.map[static_cast<size_t>(p)] += weight;
        total += weight;
      }
    for (float& weight : sample.map) weight /= total;
    return sample;
  }

  std::vector<Sample> samples() const {
    const CaptionPart& part = parts.test.count() > 0 ? parts.test : parts.validation;
    std::vector<Sample> out;
    for (const int64_t caption : CaptionParts::one_caption_each(part)) {
      if (std::ssize(out) == kShownCaptions) break;
      out.push_back(explain(part, caption));
    }
    return out;
  }
};

// The decoder begins with the padding token, as the translation task does.
void set_caption_vocabulary(Json& config, const Tokenizer& tokenizer) {
  const int64_t pad = tokenizer.padding_id().value_or(0);
  config["decoder"]["vocab_size"] = tokenizer.id_limit();
  config["pad_token_id"] = config["decoder_start_token_id"] = config["decoder"]["pad_token_id"] = pad;
  if (const std::optional<int32_t> id = end_token(tokenizer)) config["eos_token_id"] = *id;
}

// beams: with from=, replaced by that of the model unless it is set
void set_decoding_of(CaptionTask& all, bool is_new, int64_t& beams, bool is_set) {
  size_t longest = 0;
  for (const std::vector<int64_t>& row : all.parts.train.tokens) longest = std::max(longest, row.size());
  const int64_t max_length = std::min(static_cast<int64_t>(longest) * 3 / 2 + 10, max_tokens(*all.model));
  const Json& config = all.model->config();
  if (is_new)
    all.generation = {{"num_beams", beams},
                      {"max_length", max_length},
                      {"bad_words_ids", {{config.at("pad_token_id")}}},  // padding is never generated
                      {"decoder_start_token_id", config.at("decoder_start_token_id")},
                      {"eos_token_id", config.at("eos_token_id")},
                      {"pad_token_id", config.at("pad_token_id")}};
  all.decoding = is_new ? generation_options(all.generation, "generation_config.json") : caption_options(*all.model, max_length);
  if (!is_new && is_set) {
    all.decoding.beams = beams;
    all.generation = all.model->generation();
    if (!all.generation.is_null()) all.generation["num_beams"] = beams;
  }
  beams = all.decoding.beams;
}

Task make_caption_task(CaptionOptions& options, int64_t& beams, bool beams_are_set, const JobOptions& chosen) {
  const bool is_new = chosen.from.empty();
  Json config = is_new ? model_config(chosen.model) : config_from(chosen.from, ModelTask::image_captioning);
  CaptionParts parts = read_caption_parts(options, chosen, config);
  TaskTokenizer tokenizer = tokenizer_for(chosen, options.vocabulary, parts.train.data.captions, true);
  if (is_new) set_caption_vocabulary(config, tokenizer.tokenizer);
  const auto model = model_for(chosen, config);
  const int64_t limit = max_tokens(*model);
  encode_captions(parts, tokenizer.tokenizer, options.max_length > 0 ? std::min(options.max_length, limit) : limit);
  const double multiply_adds =
      static_cast<double>(cost_of(*model, {.batch = 1, .target = std::min(kTypicalCaption, limit)}).total.training_multiply_adds);
  const auto all = std::make_shared<CaptionTask>(CaptionTask{.parts = std::move(parts),
                                                             .tokenizer = std::move(tokenizer),
                                                             .train_options = chosen.train_options,
                                                             .model = model,
                                                             .decoding = {},
                                                             .generation = {},
                                                             .multiply_adds = multiply_adds});
  set_decoding_of(*all, is_new, beams, beams_are_set);
  Task task{.name = "caption", .model = model, .metric = "loss", .notes = all->parts.notes};
  add_parts(task, all->parts);
  task.batches = [all](int64_t epoch) {
    return shuffled_batches(all->parts.train.count(), all->train_options.batch, all->train_options.seed, epoch);
  };
  task.batch = [all](int64_t epoch, const std::vector<int64_t>& which) {
    return Batch{.inputs = {{"pixel_values", all->parts.augmented_pixels(which, all->train_options.seed, epoch)},
                            {"labels", padded_rows(all->parts.train.tokens, which, kNoLabel)}},
                 .samples = std::ssize(which)};
  };
  task.forward = [all](const Batch& batch, const ForwardOptions& forward_options) { return all->forward(batch, forward_options); };
  task.evaluate = [all] { return all->evaluate(all->parts.validation); };
  if (all->parts.test.count() > 0) task.test = [all] { return all->test_in_detail(); };
  task.samples = [all] { return all->samples(); };
  const int64_t first = 0;
  task.tracked = {.inputs = all->inputs(all->parts.validation, std::span(&first, 1)),
                  .image = all->parts.validation.data.images.image(all->parts.validation.data.image_of[0])};
  for (const int64_t id : all->parts.validation.tokens[0]) task.tracked.rows.push_back(all->tokenizer.tokenizer.display(id));
  task.save_preprocessing = [all](const Path& folder) {
    all->tokenizer.save(folder);
    write_json(folder / "preprocessor_config.json", all->parts.preprocessing);
    if (!all->generation.is_null()) write_json(folder / "generation_config.json", all->generation);
  };
  return task;
}

}  // namespace

TaskKind caption_kind() {
  return {.name = "caption",
          .summary = "Captions of images, with a decoder that attends to image patches",
          .preset = "caption-tiny",
          .families = {"captioner"},
          .examples = {"data=scenes epochs=10", "data=photos/captions.csv image_column=file caption_column=caption",
                       "data=photos from=runs/caption/001 rate=1e-4"},
          .declare = [](Settings& settings) {
            const auto options = std::make_shared<CaptionOptions>();
            const auto beams = std::make_shared<int64_t>(1);
            declare(settings, *options);
            settings.add("beams", *beams, "Beam size; default with from=: that of the model", {.least = 1, .most = 256});
            return [options, beams, &settings](const JobOptions& chosen) {
              check_image_settings(settings, chosen);
              return make_caption_task(*options, *beams, settings.given("beams"), chosen);
            };
          }};
}

}  // namespace heed
