#include "heed/models/text_model.h"

#include <algorithm>

#include "heed/core/autograd.h"
#include "heed/dist/split_work.h"
#include "heed/io/paths.h"
#include "heed/models/architecture.h"
#include "heed/models/finite.h"

namespace heed {
namespace {

// The model's limit, or that of its tokenizer if it is smaller.
int64_t most_tokens_of(const Model& model, const Path& folder) {
  const int64_t most = max_tokens(model.traits(), Config(model.config(), (folder / "config.json").string()));
  const Path path = folder / "tokenizer_config.json";
  if (!path_exists(path)) return most;
  const Config tokenizer(read_json(path), path.string());
  const float named = tokenizer.number("model_max_length", 0);  // transformers writes 1e30 for none
  return named >= 1 && named < static_cast<float>(most) ? static_cast<int64_t>(named) : most;
}

// All sentences in one call. For models that do not take sequences: one sentence.
TensorMap run_sequences(const Model& model, std::span<const Encoding> encodings) {
  std::vector<int64_t> ids, types;
  ForwardOptions options;
  for (const Encoding& each : encodings) {
    check(each.size() > 0, model.architecture(), ": found a sentence without any token, expected at least one");
    ids.insert(ids.end(), each.ids.begin(), each.ids.end());
    types.insert(types.end(), each.type_ids.begin(), each.type_ids.end());
    if (model.takes_sequences()) options.sequences.push_back(each.size());
  }
  const Shape shape{1, std::ssize(ids)};
  TensorMap inputs{{"input_ids", Tensor::from(ids, shape, kCpu)}};
  if (model.family().segments) inputs["token_type_ids"] = Tensor::from(types, shape, kCpu);
  return model(inputs, options);
}

}  // namespace

TextModel load_text_model(const Path& folder, const ModelOptions& options) { return with_tokenizer(load(folder, options), folder); }

TextModel with_tokenizer(Model model, const Path& folder) {
  check<FileError>(model.takes("input_ids"), (folder / "config.json").string(), ": ", model.architecture(),
                   " takes no input_ids, expected a text model");
  Tokenizer tokenizer = Tokenizer::open(folder);
  const int64_t ids = tokenizer.id_limit();
  if (const Tensor embeddings = word_table(model); embeddings.defined())
    check<FileError>(ids <= embeddings.size(0), folder.string(), ": the tokenizer has ids up to ", ids - 1, ", the model has ",
                     embeddings.size(0), " embeddings, expected one for each id");
  const int64_t most = most_tokens_of(model, folder);
  return {std::move(model), std::move(tokenizer), folder, most};
}

EncodedSentences encode_sentences(const TextModel& model, std::span<const Sentence> sentences, int64_t max_length) {
  const int64_t most = max_length > 0 ? std::min(max_length, model.max_tokens) : model.max_tokens;
  return encode_sentences(model.tokenizer, sentences, EncodeOptions{.max_length = most});
}

void each_batch(const TextModel& model, std::span<const Encoding> encodings, const std::function<TensorMap(const TextBatch& batch)>& reduce,
                const std::function<void(const TextBatch& batch)>& use) {
  const NoGrad no_grad;
  const Padding padding{.id = model.tokenizer.padding_id().value_or(0)};  // any id works: it is masked
  const std::vector<std::vector<size_t>> batches = batches_by_length(encodings);
  const auto without_outputs = [&](int64_t i) {
    TextBatch out{batches[static_cast<size_t>(i)], {}, {}};
    for (const size_t place : out.places) out.lengths.push_back(encodings[place].size());
    check(out.lengths.back() > 0, model.model.architecture(), ": found a sentence without any token, expected at least one");
    return out;
  };
  const auto run = [&](int64_t i) {
    TextBatch done = without_outputs(i);
    std::vector<Encoding> chosen;
    for (const size_t place : done.places) chosen.push_back(encodings[place]);
    const EncodedBatch batch = model.tokenizer.batch(chosen, padding);
    TensorMap inputs{{"input_ids", batch.input_ids}, {"attention_mask", batch.attention_mask}};
    if (model.model.family().segments) inputs["token_type_ids"] = batch.token_type_ids;
    done.out = model.model(inputs);
    for (const auto& [name, out] : done.out) {
      try {
        check_finite(model.model, out, out.rank() >= 3 ? std::span<const int64_t>(done.lengths) : std::span<const int64_t>());
      } catch (const NonfiniteOutput& error) {
        throw NonfiniteOutput(error.what(), static_cast<int64_t>(done.places[static_cast<size_t>(error.item)]));
      }
    }
    done.out = reduce(done);
    return done;
  };
  if (world().size() == 1 && !FinishedParts::current()) {
    for (int64_t i = 0; i < std::ssize(batches); ++i) use(run(i));
    return;
  }
  split_work(
      world(), std::ssize(batches), [&](int64_t i) { return bytes_of_tensors(run(i).out); },
      [&](int64_t i, const std::string& bytes) {
        TextBatch done = without_outputs(i);
        done.out = tensors_in(bytes);
        use(done);
      });
}

TensorMap run_together(const TextModel& model, std::span<const Encoding> encodings) {
  const NoGrad no_grad;
  TensorMap out;
  if (model.model.takes_sequences()) {
    out = run_sequences(model.model, encodings);
  } else {
    std::map<std::string, Tensors> parts;
    for (size_t i = 0; i < encodings.size(); ++i)
      for (const auto& [name, values] : run_sequences(model.model, encodings.subspan(i, 1))) parts[name].push_back(values);
    for (const auto& [name, values] : parts) out[name] = concat(values, values[0].rank() == 3 ? 1 : 0);
  }
  for (const auto& [name, values] : out) check_finite(model.model, values);
  return out;
}

}  // namespace heed
