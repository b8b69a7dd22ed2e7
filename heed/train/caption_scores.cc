#include "heed/train/caption_scores.h"

#include <set>

#include "heed/core/parallel.h"
#include "heed/dist/split_work.h"
#include "heed/train/batch_order.h"
#include "heed/train/ngrams.h"
#include "heed/train/scores.h"

namespace heed {

std::string plain_caption(const std::string& caption) {
  std::string out;
  for (const std::string& word : tokens_13a(lowercased(caption))) out += (out.empty() ? "" : " ") + word;
  return out;
}

Evaluation evaluate_captions(const Model& model, const Tokenizer& tokenizer, const ImageProcessor& reader, const CaptionedImages& data,
                             const GenerationOptions& options, const std::function<void(int64_t count)>& done) {
  constexpr int64_t at_once = 32;
  constexpr size_t listed = 20;
  const NoGrad no_grad;
  std::vector<std::set<std::string>> accepted(static_cast<size_t>(data.images.count()));
  std::vector<std::vector<std::string>> references(accepted.size());
  std::vector<std::string> first, written;  // the first reference of each image
  for (size_t c = 0; c < data.captions.size(); ++c) {
    const auto image = static_cast<size_t>(data.image_of[c]);
    references[image].push_back(data.captions[c]);
    accepted[image].insert(plain_caption(data.captions[c]));
  }
  for (const std::vector<std::string>& each : references) first.push_back(each.empty() ? "" : each.front());
  const Batches batches = batches_in_order(data.images.count(), at_once);
  const auto run = [&](int64_t number) {
    const std::vector<int64_t>& which = batches[static_cast<size_t>(number)];
    std::vector<Image> images(which.size());
    parallel_tasks(std::ssize(which),
                   [&](int64_t b) { images[static_cast<size_t>(b)] = data.images.image(which[static_cast<size_t>(b)]); });
    Json texts = Json::array();
    for (const Translated& each : write_captions(model, tokenizer, reader.normalized(images), options)) texts.push_back(each.text);
    const std::vector<uint8_t> bytes = Json::to_cbor(texts);
    return std::string(bytes.begin(), bytes.end());
  };
  split_work(world(), std::ssize(batches), run, [&](int64_t number, const std::string& bytes) {
    for (const Json& text : Json::from_cbor(bytes)) written.push_back(text.get<std::string>());
    if (done) done(std::ssize(batches[static_cast<size_t>(number)]));
  });
  RunningMean exact{0, static_cast<double>(written.size())};
  Evaluation out;
  Json list = Json::array();
  for (size_t i = 0; i < written.size(); ++i) {
    exact.sum += accepted[i].contains(plain_caption(written[i]));
    if (i < listed)
      list.push_back({{"image", data.images.name(static_cast<int64_t>(i))}, {"reference", first[i]}, {"written", written[i]}});
  }
  if (std::any_of(data.captions.begin(), data.captions.end(), [](const std::string& each) { return tokens_13a(each).size() >= 4; }))
    out.figures.emplace_back("bleu", bleu_of_several(written, references).bleu);
  out.figures.emplace_back("chrf", chrf(written, first));
  out.figures.emplace_back("exact", exact.sum / exact.count);
  out.detail = {{"captions", list}};
  return out;
}

}  // namespace heed
