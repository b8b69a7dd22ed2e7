// /api/classify: labels of texts, of their words, of masked words, or of an image.
#include "heed/io/json_reader.h"
#include "heed/models/classify.h"
#include "heed/models/token_labels.h"
#include "heed/ops/ops.h"
#include "heed/serve/app.h"
#include "heed/serve/request_image.h"
#include "heed/serve/tensor_json.h"

namespace heed::serve {
namespace {

constexpr int64_t kMostScores = int64_t{1} << 28;  // of the vocabulary's words for all tokens, in memory together

Json labels_json(const std::vector<Label>& labels) {
  Json out = Json::array();
  for (const Label& each : labels) out.push_back({{"label", each.name}, {"id", each.id}, {"score", short_number(each.score)}});
  return out;
}

// logits: (C)
std::vector<Label> labels_of(const LoadedModel& loaded, const Tensor& logits, int64_t top) {
  return loaded.labels()(reshape(logits, {1, logits.count()}), top)[0];
}

Json classified(const ModelInfo& info, ServedTask task, Json results) {
  return {{"model", info.id}, {"task", name_of(task)}, {"results", std::move(results)}};
}

void classify_image(const Call& call, const JsonReader& body, const std::shared_ptr<ModelHost>& host, int64_t top) {
  const ModelInfo& info = host->info();
  require(info.image, 422, info.id, ": ", info.architecture, " takes text, found an image");
  require(info.task == ServedTask::classify, 422, info.id, ": ", info.architecture, " has no labels");
  BatchJob job{.kind = BatchJob::Kind::images, .images = {image_in(body["image"])}, .failed = call.failed(), .cancelled = call.cancelled()};
  job.done = [call, top, info](const LoadedModel& loaded, const Tensors& logits) {
    const Json labels = labels_json(labels_of(loaded, logits[0], top));
    call.reply_later([=] { return classified(info, ServedTask::classify, Json::array({{{"labels", labels}}})); });
  };
  host->submit(std::move(job));
}

struct TextsToLabel {
  std::vector<std::string> texts;
  std::vector<Encoding> encodings;
};

TextsToLabel texts_in(const JsonReader& body, ModelHost& host) {
  TextsToLabel out;
  if (body["text"].json().is_string())
    out.texts = {body.text("text")};
  else
    for (const JsonReader& each : body["text"].list()) out.texts.push_back(each.text());
  require(!out.texts.empty() && out.texts.size() <= 256, 400, "body: text: found ", out.texts.size(), " texts, expected 1 to 256");
  require(!body.has("pair") || out.texts.size() == 1, 400, "body: pair: found several texts, expected one with a pair");
  const Tokenizer tokenizer = host.tokenizer();
  const EncodeOptions options{.max_length = host.info().max_tokens};
  for (const std::string& text : out.texts) {
    out.encodings.push_back(body.has("pair") ? tokenizer.encode(text, body.text("pair"), options) : tokenizer.encode(text, options));
    require(out.encodings.back().size() > 0, 400, "body: text: found a text without tokens, expected one or more");
  }
  return out;
}

Json words_json(const std::string& text, const std::vector<LabelledWord>& words) {
  Json out = Json::array();
  for (const LabelledWord& each : words)
    out.push_back({{"text", text.substr(static_cast<size_t>(each.at.begin), static_cast<size_t>(each.at.end - each.at.begin))},
                   {"begin", each.at.begin},
                   {"end", each.at.end},
                   {"label", each.label.name},
                   {"score", short_number(each.label.score)}});
  return out;
}

Json masks_json(const std::vector<FilledMask>& masks) {
  Json out = Json::array();
  for (const FilledMask& each : masks) out.push_back({{"begin", each.at.begin}, {"end", each.at.end}, {"labels", labels_json(each.words)}});
  return out;
}

// Models that label words or fill masks.
void label_tokens(const Call& call, const std::shared_ptr<ModelHost>& host, const std::shared_ptr<TextsToLabel>& given, int64_t top) {
  BatchJob job{.kind = BatchJob::Kind::token_labels, .sentences = given->encodings, .failed = call.failed(), .cancelled = call.cancelled()};
  job.done = [call, given, top, info = host->info()](const LoadedModel& loaded, const Tensors& logits) {
    Json results = Json::array();
    for (size_t i = 0; i < logits.size(); ++i) {
      const Encoding& encoding = given->encodings[i];
      Json result{{"tokens", encoding.size()}};
      if (info.task == ServedTask::tag)
        result["words"] = words_json(given->texts[i], words_of(loaded.text(), encoding, logits[i]));
      else
        result["masks"] = masks_json(masks_of(loaded.text(), encoding, logits[i], top > 0 ? top : 5));
      results.push_back(std::move(result));
    }
    call.reply_later([=] { return classified(info, info.task, results); });
  };
  host->submit(std::move(job));
}

void classify_request(const Call& call) {
  const Json json = call.body();
  const JsonReader body(json, "body");
  const auto host = call.app.models().host(body.text("model"));
  const ModelInfo& info = host->info();
  const int64_t top = body.has("top") ? body["top"].whole(0) : 5;
  require(body.has("text") != body.has("image"), 400, "body: expected one of text and image");
  if (body.has("image")) return classify_image(call, body, host, top);
  const bool labels = info.task == ServedTask::classify || info.task == ServedTask::tag || info.task == ServedTask::fill;
  require(!info.image && labels, 422, info.id, ": ", info.architecture, " gives no labels for texts");
  const auto given = std::make_shared<TextsToLabel>(texts_in(body, *host));
  if (info.task == ServedTask::fill) {
    const std::optional<int32_t> mask = host->tokenizer().mask_id();
    int64_t tokens = 0;
    for (const Encoding& each : given->encodings) tokens += each.size();
    require(tokens * info.vocabulary <= kMostScores, 400, "body: text: found ", tokens, " tokens, expected at most ",
            kMostScores / std::max<int64_t>(1, info.vocabulary));
    for (const Encoding& each : given->encodings)
      require(mask && std::find(each.ids.begin(), each.ids.end(), *mask) != each.ids.end(), 400, "body: text: found no ",
              mask ? host->tokenizer().display(*mask) : "mask token", ", expected one or more");
  }
  if (info.task != ServedTask::classify) return label_tokens(call, host, given, top);
  BatchJob job{.kind = BatchJob::Kind::labels, .sentences = given->encodings, .failed = call.failed(), .cancelled = call.cancelled()};
  job.done = [call, given, top, info](const LoadedModel& loaded, const Tensors& logits) {
    Json results = Json::array();
    for (size_t i = 0; i < logits.size(); ++i)
      results.push_back({{"labels", labels_json(labels_of(loaded, logits[i], top))}, {"tokens", given->encodings[i].size()}});
    call.reply_later([=] { return classified(info, info.task, results); });
  };
  host->submit(std::move(job));
}

}  // namespace

Endpoints classify_endpoints() { return {{"POST", "/api/classify", Where::worker, classify_request}}; }

}  // namespace heed::serve
