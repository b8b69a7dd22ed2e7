#include "heed/models/caption.h"

#include <algorithm>

#include "heed/models/architecture.h"
#include "heed/models/beam.h"

namespace heed {

std::vector<Translated> write_captions(const Model& model, const Tokenizer& tokenizer, const Tensor& pixels,
                                       const GenerationOptions& options) {
  const TensorMap inputs{{"pixel_values", pixels}};
  const Beams found = options.beams > 1 ? beam_search(model, inputs, options) : Beams{generate(model, inputs, options), {}};
  std::vector<Translated> out;
  for (int64_t b = 0; b < pixels.size(0); ++b) {
    Translated each{.tokens = generated_tokens(found.tokens, b, 1, options)};
    each.text = text_of(tokenizer, each.tokens);
    if (!found.scores.empty()) each.score = found.scores[static_cast<size_t>(b)];
    out.push_back(std::move(each));
  }
  return out;
}

GenerationOptions caption_options(const Model& model, int64_t length) {
  GenerationOptions options = generation_options(model);
  options.count = 1;
  options.sample = false;
  if (!generation_settings(model).contains("max_new_tokens") && options.max_length == 0) options.max_length = length;
  if (options.max_length > 0) options.max_length = std::min(options.max_length, max_tokens(model));
  return options;
}

}  // namespace heed
