#include "heed/cli/eval_captions.h"

#include "heed/cli/sentence_reader.h"
#include "heed/models/architecture.h"
#include "heed/models/caption.h"
#include "heed/models/image_processor.h"
#include "heed/train/caption_scores.h"
#include "heed/train/retrieval.h"

namespace heed::cli {

CaptionEvaluation evaluate_on_captions(const Model& model, const Path& folder, const std::string& data, const std::string& part,
                                       const DataSettings& settings, const Done& done) {
  CaptionedImages items;
  std::string used;
  for (const auto& [name, which] :
       {std::pair("test", DataPart::test), std::pair("validation", DataPart::validation), std::pair("train", DataPart::train)}) {
    if (items.count() > 0 || (!part.empty() && part != name)) continue;
    items = read_captions(data, which, settings.captions, settings.image_folder);
    used = name;
  }
  check<FileError>(items.count() > 0, data, ": found no captions", part.empty() ? "" : " in the part " + part, ", expected at least one");
  const ImageProcessor reader(folder);
  const Tokenizer tokenizer = Tokenizer::open(folder);
  items.images.image = [read = items.images.image, &reader](int64_t i) { return reader.prepared(read(i)); };
  const Image first = items.images.image(0);
  check_image_size(model, folder, reader.normalized(std::span(&first, 1)));
  const bool compares = model.traits().task == ModelTask::image_text_matching;
  return {.evaluation = compares ? encode_for_retrieval(model, tokenizer, reader, items, max_tokens(model), done).evaluation()
                                 : evaluate_captions(model, tokenizer, reader, items, caption_options(model), done),
          .what = std::to_string(items.images.count()) + " images, " + std::to_string(items.count()) + " captions, " + used,
          .columns = items.columns};
}

}  // namespace heed::cli
