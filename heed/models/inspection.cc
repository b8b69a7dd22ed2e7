#include "heed/models/inspection.h"

#include <algorithm>
#include <charconv>

#include "heed/core/autograd.h"
#include "heed/io/image_files.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"
#include "heed/models/config.h"
#include "heed/models/generate.h"
#include "heed/models/image_processor.h"
#include "heed/models/inspection_caption.h"
#include "heed/models/translate.h"
#include "heed/text/tokenizer.h"

namespace heed {
namespace {

using Ids = std::vector<int64_t>;

// Texts as tokens of the model. With `ids`, texts are token ids and no tokenizer is needed.
class Reader {
 public:
  Reader(const Tokenizer* tokenizer, bool ids) {
    if (!ids) tokenizer_ = *tokenizer;
  }

  struct Tokens {
    Ids ids, types;
  };
  Tokens read(const std::string& text, const std::optional<std::string>& pair = {}) const {
    if (!tokenizer_) {
      check<UsageError>(!pair, "inspect: found --pair and --ids, expected one of them");
      Tokens out{.ids = numbers_in(text), .types = {}};
      out.types.resize(out.ids.size());
      return out;
    }
    const Encoding encoding = pair ? tokenizer_->encode(text, *pair) : tokenizer_->encode(text);
    return {{encoding.ids.begin(), encoding.ids.end()}, {encoding.type_ids.begin(), encoding.type_ids.end()}};
  }
  std::string label(int64_t id) const { return tokenizer_ ? tokenizer_->display(id) : std::to_string(id); }
  std::vector<std::string> labels(std::span<const int64_t> ids) const {
    std::vector<std::string> out;
    for (int64_t id : ids) out.push_back(label(id));
    return out;
  }
  std::string text(const Ids& ids) const {  // empty without a tokenizer
    return tokenizer_ ? text_of(*tokenizer_, std::vector<int32_t>(ids.begin(), ids.end())) : "";
  }
  int64_t mask() const { return tokenizer_ ? tokenizer_->mask_id().value_or(-1) : -1; }

 private:
  static Ids numbers_in(const std::string& text) {
    Ids out;
    for (const char *at = text.data(), *end = at + text.size(); at < end;) {
      if (*at == ' ' || *at == ',') {
        ++at;
        continue;
      }
      int64_t id = 0;
      const auto [next, error] = std::from_chars(at, end, id);
      check<UsageError>(error == std::errc() && id >= 0, "inspect: found ", in_quotes(std::string(at, end), 20),
                        ", expected token ids separated by spaces or commas");
      out.push_back(id);
      at = next;
    }
    return out;
  }

  std::optional<Tokenizer> tokenizer_ = {};
};

Tensor as_batch(const Ids& ids) { return Tensor::from(ids, {1, std::ssize(ids)}, kCpu); }

void check_ids(const Model& model, const Ids& ids, const std::string& text) {
  check<FileError>(!ids.empty(), "inspect: the text ", in_quotes(text, 40), " has no tokens, expected one or more");
  const int64_t vocabulary = word_table(model).size(0);
  for (int64_t id : ids)
    check<FileError>(id < vocabulary, "inspect: found token ", id, ", expected less than ", vocabulary, ", the vocabulary size");
  const int64_t positions = max_tokens(model);
  check<FileError>(std::ssize(ids) <= positions, "inspect: found ", ids.size(), " tokens, expected at most ", positions,
                   ", the positions of the model");
}

bool is_image_file(const std::string& text) { return is_image_name(text) && is_plain_file(text); }

// The number of the attention call, as AttentionTap counts: encoder layers first, then self and cross attention of decoder layers.
int64_t call_of(const std::string& kind, int64_t layer, int64_t encoder_layers) {
  if (kind == "decoder") return encoder_layers + 2 * layer;
  return kind == "cross" ? encoder_layers + 2 * layer + 1 : layer;
}

// The layers of the encoder or of the decoder of a translation model.
int64_t layer_count(const Model& model, bool encoder) {
  const Config config(model.config(), "config.json");
  const ConfigKeys::Names& keys = model.family().keys.layers;
  const std::string& own = encoder ? keys.front() : keys.back();
  return config.size(config.has(own) ? own : keys.front(), 12, 0);
}

// Models that take images and texts: by what the input looks like. Other models take one kind.
InputKind kind_of_input(const Model& model, const InspectOptions& options) {
  if (!model.family().pixels || !model.family().tokens) return input_kind(model);
  return options.image || (!options.ids && is_image_name(options.input)) ? InputKind::image : InputKind::text;
}

// Runs the model with maps, and with the changes and records that the options ask for.
TensorMap run_inspected(const Model& model, const TensorMap& inputs, const InspectOptions& options, Inspection& inspection) {
  const bool translation = inspection.kind == InputKind::translation;
  const int64_t encoder = translation ? layer_count(model, true) : 0, decoder = translation ? layer_count(model, false) : 0;
  AttentionEdit::Changes changes{.beta = options.beta, .hidden = options.hidden};
  for (const auto& [kind, layer, head] : options.off) changes.off.insert({call_of(kind, layer, encoder), head});
  for (int64_t i = 0; translation && i < encoder; ++i) changes.hidden_calls.insert(i);
  for (int64_t i = 0; translation && i < decoder; ++i) changes.hidden_calls.insert(call_of("cross", i, encoder));
  const auto run = [&](const ForwardOptions& forward) {
    std::optional<AttentionEdit> edit;
    if (!changes.empty()) edit.emplace(changes);
    return model(inputs, forward);
  };
  std::vector<AttentionTap::Operands> parts;
  if (options.terms) parts = position_parts(model, [&] { run({}); });
  std::optional<ShapeTrace> trace;
  if (options.shapes) trace.emplace();
  const AttentionTap tap({.calls = {-1}, .operands = options.terms});
  TensorMap out = run({.hidden_states = options.shapes, .attentions = options.maps});
  inspection.terms = score_terms(parts, tap.operands());
  if (trace) inspection.shapes = trace->records(model, inputs, out);
  return out;
}

void inspect_image(const InspectedModel& inspected, const InspectOptions& options, Inspection& inspection) {
  const Model& model = inspected.model;
  check<FileError>(options.image || path_exists(options.input), options.input, ": there is no such file; ", model.architecture(),
                   " takes images, expected a ", kReadFormats, " file");
  const ImageProcessor& processor = *inspected.images;
  const Image image = options.image ? *options.image : read_image(options.input);
  inspection.image = processor.prepared(image);
  const Tensor pixels = processor(std::span(&image, 1));
  check_image_size(model, inspected.folder, pixels);
  const TensorMap out = run_inspected(model, {{"pixel_values", pixels}}, options, inspection);
  if (!options.maps) return;
  inspection.maps = {maps_in(out, "attentions.", "attention", options.choice)};
  AttentionMaps& maps = inspection.maps[0];
  const std::array<int64_t, 2> grid = patch_grid(model, inspection.image);
  inspection.rows = grid[0];
  inspection.columns = grid[1];
  inspection.first = maps.N - inspection.rows * inspection.columns;
  check(inspection.first >= 0 && maps.M == maps.N, "inspect: maps of ", maps.N, " x ", maps.M, " tokens on a grid of ", inspection.rows,
        " x ", inspection.columns, ", expected a key for every patch");
  inspection.rollout = rollout(out, "attentions.");
  inspection.predictions = predictions_in(model, out, {}, {}, {.top = options.top});
  for (int64_t i = 0; i < inspection.first; ++i)
    maps.rows.push_back(i == 0 ? "[class]"
                               : "[" + model.family().extra_token + (inspection.first > 2 ? " " + std::to_string(i) : "") + "]");
  for (int64_t i = 0; i < inspection.rows * inspection.columns; ++i)
    maps.rows.push_back("row " + std::to_string(i / inspection.columns) + ", column " + std::to_string(i % inspection.columns));
  maps.columns = maps.rows;
}

void inspect_text(const InspectedModel& inspected, const InspectOptions& options, Inspection& inspection) {
  const Model& model = inspected.model;
  const Reader reader(inspected.tokenizer, options.ids);
  const Reader::Tokens tokens = reader.read(options.input, options.pair);
  check_ids(model, tokens.ids, options.input);
  TensorMap inputs{{"input_ids", as_batch(tokens.ids)}};
  if (model.family().segments) inputs["token_type_ids"] = as_batch(tokens.types);
  inspection.tokens = tokens.ids;
  const TensorMap out = run_inspected(model, inputs, options, inspection);
  if (!options.maps) return;
  inspection.maps = {maps_in(out, "attentions.", "attention", options.choice)};
  inspection.maps[0].rows = inspection.maps[0].columns = reader.labels(tokens.ids);
  inspection.predictions = predictions_in(model, out, tokens.ids, [&](int64_t id) { return reader.label(id); },
                                          {.top = options.top, .every_token = options.every_token, .mask = reader.mask()});
  inspection.rollout = rollout(out, "attentions.");
}

// The translation generated by the model, with its start token.
Ids generated_ids(const Model& model, const Ids& source) {
  GenerationOptions options = generation_options(model);
  const Json rules = generation_settings(model);
  if (!rules.contains("max_length")) options.max_length = std::min(2 * std::ssize(source) + 10, max_tokens(model));
  return generate(model, {{"input_ids", as_batch(source)}}, options).to_vector<int64_t>();
}

void inspect_translation(const InspectedModel& inspected, const InspectOptions& options, Inspection& inspection) {
  const Model& model = inspected.model;
  const Reader reader(inspected.tokenizer, options.ids), target_reader(inspected.target, options.ids);
  const Ids source = reader.read(options.input, options.pair).ids;
  check_ids(model, source, options.input);
  Ids target;
  inspection.own_translation = !options.target;
  if (options.target) {
    target = target_reader.read(*options.target).ids;
    check_ids(model, target, *options.target);
    target.insert(target.begin(), generation_options(model).start);
  } else {
    target = generated_ids(model, source);
  }
  check<FileError>(target.size() >= 2 && target[0] >= 0, "inspect: ", target.size(), " tokens in the target, expected 2 or more");
  const Ids decoder_input(target.begin(), target.end() - 1), predicted(target.begin() + 1, target.end());
  inspection.tokens = source;
  inspection.target_tokens = predicted;
  const TensorMap out =
      run_inspected(model, {{"input_ids", as_batch(source)}, {"decoder_input_ids", as_batch(decoder_input)}}, options, inspection);
  if (!options.maps) return;
  for (int64_t layer : options.choice.layers)
    check<UsageError>(
        out.contains("encoder_attentions." + std::to_string(layer)) || out.contains("cross_attentions." + std::to_string(layer)),
        "inspect: found layer ", layer, ", expected a layer of the model");
  for (const std::string kind : {"cross", "encoder", "decoder"}) {  // recurrent networks have cross-attention alone
    const std::string prefix = kind + "_attentions.";
    inspection.maps.push_back(out.contains(prefix + "0") ? maps_in(out, prefix, kind, options.choice, true) : AttentionMaps{.kind = kind});
  }
  // A row of cross attention is labelled with the token it predicts, so that the map reads as an alignment.
  inspection.maps[0].rows = target_reader.labels(predicted);
  inspection.translation = target_reader.text(predicted);
  inspection.maps[0].columns = inspection.maps[1].rows = inspection.maps[1].columns = reader.labels(source);
  inspection.maps[2].rows = inspection.maps[2].columns = target_reader.labels(decoder_input);
  std::erase_if(inspection.maps, [](const AttentionMaps& maps) { return maps.layers.empty(); });
}

// models/vit-tiny -> "vit-tiny"; runs/classify/001/best -> "001/best", as the models of all runs have that name
std::string model_name(const Path& folder) {
  const Path whole = std::filesystem::weakly_canonical(folder);
  const std::string name = whole.filename().string(), above = whole.parent_path().filename().string();
  return (name == "best" || name == "last") && !above.empty() ? above + "/" + name : name;
}

}  // namespace

const ScoreTerms& terms_of(const Inspection& inspection, const AttentionMaps& maps, int64_t layer) {
  return inspection.terms.at(static_cast<size_t>(call_of(maps.kind, layer, std::ssize(inspection.terms) - 2 * maps.all_layers)));
}

Inspection inspect(const InspectedModel& inspected, const InspectOptions& options) {
  const NoGrad no_grad;
  const Model& model = inspected.model;
  Inspection inspection{.kind = kind_of_input(model, options),
                        .task = model.traits().task,
                        .model = model_name(inspected.folder),
                        .architecture = model.architecture(),
                        .input = options.input};
  const bool image = inspection.kind == InputKind::image, captions = inspection.task == ModelTask::image_captioning;
  if (captions) inspection.kind = InputKind::translation;  // from an image
  if (image) inspection.input = printable(options.input);
  check<UsageError>(inspection.kind == InputKind::translation || !options.target, "inspect: found --target for ", model.architecture(),
                    ", expected a model that translates");
  check<UsageError>(!image || (!options.pair && !options.ids), "inspect: --pair and --ids are for texts; ", model.architecture(),
                    " takes images");
  check<FileError>(image || !is_image_file(options.input), options.input, ": is an image, but ", model.architecture(), " takes text");
  if (captions)
    inspect_caption(inspected, options, inspection);
  else if (image)
    inspect_image(inspected, options, inspection);
  else if (inspection.kind == InputKind::text)
    inspect_text(inspected, options, inspection);
  else
    inspect_translation(inspected, options, inspection);
  return inspection;
}

namespace {

Tokenizer tokenizer_for_inspection(const Path& folder) {
  try {
    return Tokenizer::open(folder);
  } catch (const FileError& error) {
    fail<FileError>(error.what(), "; without a tokenizer, --ids takes token ids instead of words");
  }
}

}  // namespace

Inspection inspect(const Path& folder, const InspectOptions& options) {
  const Model model = load(folder);
  const InputKind kind = kind_of_input(model, options);
  const bool image = kind == InputKind::image, tokens = !image && !options.ids,
             captions = model.traits().task == ModelTask::image_captioning;
  std::optional<Tokenizer> tokenizer, target;
  std::optional<ImageProcessor> images;
  if (image) images.emplace(folder);
  if (tokens) tokenizer.emplace(tokenizer_for_inspection(folder));
  if (captions || (tokens && kind == InputKind::translation)) target.emplace(Tokenizer::open_target(folder));
  return inspect({.model = model,
                  .folder = folder,
                  .tokenizer = tokenizer ? &*tokenizer : nullptr,
                  .target = target ? &*target : nullptr,
                  .images = images ? &*images : nullptr},
                 options);
}

}  // namespace heed
