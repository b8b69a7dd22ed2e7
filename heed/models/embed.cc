#include "heed/models/embed.h"

#include <algorithm>

#include "heed/io/paths.h"
#include "heed/models/architecture.h"
#include "heed/nn/pooling.h"

namespace heed {
namespace {

// The pooling of a sentence-transformers config; older files have one flag per kind.
SentencePooling read_pooling(const Path& path) {
  const Config config(read_json(path), path.string());
  if (config.has("pooling_mode")) {
    const std::string name = config.string("pooling_mode", "");
    if (name != "mean" && name != "cls" && name != "max") config.refuse("pooling_mode", "mean, cls or max");
    return sentence_pooling_named(name);
  }
  std::vector<SentencePooling> chosen;
  if (config.flag("pooling_mode_cls_token", false)) chosen.push_back(SentencePooling::first);
  if (config.flag("pooling_mode_mean_tokens", false)) chosen.push_back(SentencePooling::mean);
  if (config.flag("pooling_mode_max_tokens", false)) chosen.push_back(SentencePooling::largest);
  for (const char* other : {"pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"})
    config.only(other, false);
  check<FileError>(chosen.size() == 1, path.string(), ": found ", chosen.size(), " kinds of pooling, expected one: mean, cls or max");
  return chosen.front();
}

// The list of modules: the encoder in the folder itself, pooling, and optionally normalization.
void read_modules(const Path& folder, EmbedOptions& options) {
  const Path path = folder / "modules.json";
  const Json modules = read_json(path);
  options.normalize = false;
  for (const JsonReader& entry : JsonReader(modules, path.string()).list()) {
    const Config module(entry.json(), path.string());
    const std::string type = module.string("type", ""), kind = type.substr(type.rfind('.') + 1), subfolder = module.string("path", "");
    if (kind == "Transformer")
      module.only("path", "");
    else if (kind == "Pooling")
      options.pooling = read_pooling(folder / subfolder / "config.json");
    else if (kind == "Normalize")
      options.normalize = true;
    else
      module.refuse("type", "a Transformer, a Pooling or a Normalize");
  }
}

// The encoder of a checkpoint with any head.
const Architecture& encoder_in(const Path& folder) {
  const Config config(read_json(folder / "config.json"), (folder / "config.json").string());
  const Architecture& found = architecture_of(config);
  const bool compares = found.task == ModelTask::image_text_matching;  // has an output for text embeddings
  const Architecture* encoder = compares ? &found : for_task(found, ModelTask::features);
  check<FileError>(encoder && found.family->tokens, config.source(), ": ", found.name, " has no token states, expected an encoder");
  return *encoder;
}

// To length 1, if the options say so. x: (B, D)
Tensor normalized(const Tensor& x, const EmbedOptions& options) {
  return options.normalize ? x / scale(sqrt(sum(x * x, {1}, true)), 1, 1e-12f) : x;
}

// x: (B, N, D), lengths: B numbers -> (B, D)
Tensor pool(const Tensor& x, std::span<const int64_t> lengths, SentencePooling pooling) {
  if (pooling == SentencePooling::first) return pool_class(x);
  if (pooling == SentencePooling::mean) return pool_mean(x, Tensor::from(lengths, {std::ssize(lengths)}, kCpu));
  Tensors rows;
  for (int64_t b = 0; b < std::ssize(lengths); ++b)
    rows.push_back(max(slice(slice(x, 0, b, b + 1), 1, 0, lengths[static_cast<size_t>(b)]), {1}));
  return concat(rows, 0);
}

}  // namespace

SentencePooling sentence_pooling_named(const std::string& name) {
  if (name == "mean") return SentencePooling::mean;
  if (name == "cls") return SentencePooling::first;
  check(name == "max", "embed: found the pooling ", in_quotes(name), ", expected mean, cls or max");
  return SentencePooling::largest;
}

EmbedOptions embed_options(const Path& folder) {
  EmbedOptions options;
  if (path_exists(folder / "modules.json"))
    read_modules(folder, options);
  else if (path_exists(folder / "1_Pooling" / "config.json"))
    options.pooling = read_pooling(folder / "1_Pooling" / "config.json");
  if (const Path path = folder / "sentence_bert_config.json"; path_exists(path))
    options.max_length = Config(read_json(path), path.string()).size("max_seq_length", 0);
  return options;
}

TextModel load_embedder(const Path& folder, Weights weights, const Warn& allow_nonfinite) {
  check<FileError>(is_folder(folder), folder.string(), ": there is no such folder");
  ModelOptions options{.weights = weights};
  const Architecture& encoder = encoder_in(folder);
  options.architecture = encoder.name;
  options.names = {.allow_unused = {""}, .allow_nonfinite = allow_nonfinite};
  return load_text_model(folder, options);
}

Tensor pool_sentences(const Tensor& states, std::span<const int64_t> lengths, const EmbedOptions& options) {
  return normalized(pool(states, lengths, options.pooling), options);
}

Tensor embed(const TextModel& model, std::span<const Encoding> encodings, const EmbedOptions& options,
             const std::function<void(int64_t sentences)>& done) {
  const NoGrad no_grad;
  Tensors parts;
  std::vector<int64_t> order(encodings.size());  // row of each sentence in the concatenated parts
  int64_t count = 0;
  const auto vectors_of = [&](const TextBatch& batch) -> TensorMap {
    const auto states = batch.out.find("last_hidden_state"), vectors = batch.out.find("text_embeds");
    check(states != batch.out.end(), "embed: ", model.model.architecture(), " has no output last_hidden_state, expected an encoder");
    if (vectors != batch.out.end()) return {{"vectors", normalized(vectors->second, options)}};
    return {{"vectors", pool_sentences(states->second, batch.lengths, options)}};
  };
  each_batch(model, encodings, vectors_of, [&](const TextBatch& batch) {
    parts.push_back(batch.out.at("vectors"));
    for (const size_t place : batch.places) order[place] = count++;
    if (done) done(std::ssize(batch.places));
  });
  check(count > 0, "embed: found no sentences, expected at least one");
  return index_select(concat(parts, 0), 0, Tensor::from(order, {count}, parts[0].device()));
}

Tensor embed(const TextModel& model, std::span<const Sentence> sentences, const EmbedOptions& options) {
  return embed(model, encode_sentences(model, sentences, options.max_length).encodings, options);
}

}  // namespace heed
