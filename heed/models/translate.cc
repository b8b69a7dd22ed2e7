#include "heed/models/translate.h"

#include <algorithm>

#include "heed/dist/split_work.h"
#include "heed/io/json.h"
#include "heed/models/beam.h"
#include "heed/ops/ops.h"
#include "heed/text/batches.h"

namespace heed {

std::vector<int32_t> generated_tokens(const Tensor& texts, int64_t row, int64_t prompt_length, const GenerationOptions& options) {
  const std::vector<int64_t> tokens = slice(slice(texts, 0, row, row + 1), 1, prompt_length, texts.size(1)).to_vector<int64_t>();
  auto end = std::find_first_of(tokens.begin(), tokens.end(), options.end.begin(), options.end.end());
  if (end != tokens.end()) ++end;
  return {tokens.begin(), end};
}

std::string text_of(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<int32_t> known(ids.begin(), ids.end());
  std::erase_if(known, [&](int32_t id) { return !tokenizer.has(id); });
  return tokenizer.decode(known);
}

std::vector<Translated> translate(const Model& model, const TranslationTokenizers& tokenizers, std::span<const Encoding> sentences,
                                  const GenerationOptions& options, const std::function<void(int64_t count)>& done) {
  constexpr int64_t batch_tokens = 4096;
  const Padding padding{.id = tokenizers.pad};
  std::vector<Translated> out(sentences.size());
  const std::vector<std::vector<size_t>> batches = batches_by_length(sentences, std::max<int64_t>(batch_tokens / options.beams, 1));
  // -> per sentence: its tokens, and its score if there is one
  const auto run = [&](int64_t number) {
    std::vector<size_t> filled;
    std::vector<Encoding> batch;
    Json results = Json::array();
    for (const size_t place : batches[static_cast<size_t>(number)])
      if (sentences[place].size() > 0) {
        filled.push_back(place);
        batch.push_back(sentences[place]);
      }
    if (!batch.empty()) {
      const EncodedBatch texts = tokenizers.source.batch(batch, padding);
      const TensorMap inputs{{"input_ids", texts.input_ids}, {"attention_mask", texts.attention_mask}};
      const Beams found = options.beams > 1 ? beam_search(model, inputs, options) : Beams{generate(model, inputs, options), {}};
      for (size_t i = 0; i < filled.size(); ++i)
        results.push_back({filled[i], generated_tokens(found.tokens, static_cast<int64_t>(i), 1, options),
                           found.scores.empty() ? Json() : Json(found.scores[i])});
    }
    const std::vector<uint8_t> bytes = Json::to_cbor(results);
    return std::string(bytes.begin(), bytes.end());
  };
  split_work(world(), std::ssize(batches), run, [&](int64_t number, const std::string& bytes) {
    for (const Json& result : Json::from_cbor(bytes)) {
      Translated& each = out[result.at(0).get<size_t>()];
      each.tokens = result.at(1).get<std::vector<int32_t>>();
      each.text = text_of(tokenizers.target, each.tokens);
      if (!result.at(2).is_null()) each.score = result.at(2).get<float>();
    }
    if (done) done(std::ssize(batches[static_cast<size_t>(number)]));
  });
  return out;
}

}  // namespace heed
