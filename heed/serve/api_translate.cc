// /api/translate: sentences through an encoder-decoder.
#include "heed/io/json_reader.h"
#include "heed/models/cost.h"
#include "heed/models/translate.h"
#include "heed/serve/app.h"
#include "heed/text/batches.h"

namespace heed::serve {
namespace {

GenerationOptions translation_options(const LoadedModel& loaded, const JsonReader& body, int64_t limit) {
  GenerationOptions out = loaded.generation();
  out.count = 1;
  out.sample = out.sample && !body.has("beams");
  if (body.has("beams")) out.beams = body["beams"].whole(1, 16);
  const Json json = generation_settings(loaded.model());
  // The default of `transformers`, 20 tokens, is too few for a sentence.
  if (!json.contains("max_new_tokens") && out.max_length == 0) out.max_length = 512;
  if (body.has("max_tokens")) out.max_length = body["max_tokens"].whole(1) + 1;
  out.max_length = std::min({out.max_length > 0 ? out.max_length : limit, limit, loaded.text().max_tokens});
  return out;
}

// Requests with the same options share a call if all their sentences are equally long: padding would change the last bits.
std::string group_of(const Json& body, const std::vector<Encoding>& sentences) {
  static std::atomic<int64_t> alone{0};
  for (const Encoding& each : sentences)
    if (each.size() != sentences[0].size()) return "alone " + std::to_string(++alone);
  return dump({body.value("beams", Json()), body.value("max_tokens", Json()), sentences[0].size()});
}

void translate_request(const Call& call) {
  const auto json = std::make_shared<Json>(call.body());
  const JsonReader body(*json, "body");
  const auto host = call.app.models().host(body.text("model"));
  const ModelInfo& info = host->info();
  require(info.task == ServedTask::translate, 422, info.id, ": ", info.architecture, " does not translate");
  std::vector<Sentence> sentences;
  if (body["text"].json().is_string())
    sentences.push_back({body.text("text")});
  else
    for (const JsonReader& each : body["text"].list()) sentences.push_back({each.text()});
  require(!sentences.empty() && sentences.size() <= 64, 400, "body: text: found ", sentences.size(), " texts, expected 1 to 64");
  const auto encoded =
      std::make_shared<EncodedSentences>(encode_sentences(host->tokenizer(), sentences, EncodeOptions{.max_length = info.max_tokens}));
  for (size_t i = 0; i < sentences.size(); ++i)
    if (sentences[i].text.find_first_not_of(" \t\n") == std::string::npos) encoded->encodings[i] = {};
  BatchJob job{
      .kind = BatchJob::Kind::translations, .sentences = encoded->encodings, .failed = call.failed(), .cancelled = call.cancelled()};
  job.translation = [json, limit = call.app.options().max_tokens](const LoadedModel& loaded) {
    return translation_options(loaded, JsonReader(*json, "body"), limit);
  };
  job.group = group_of(*json, encoded->encodings);
  job.translated = [call, id = info.id](const LoadedModel& loaded, std::span<const Translated> translated) {
    Json results = Json::array();
    for (const Translated& each : translated) {
      std::vector<std::string> names;
      for (const int32_t token : each.tokens) names.push_back(loaded.target().display(token));
      Json result{{"text", each.text}, {"tokens", std::move(names)}, {"ids", each.tokens}};
      if (each.score) result["score"] = *each.score;
      results.push_back(std::move(result));
    }
    call.reply_later([=] { return Json{{"model", id}, {"results", results}}; });
  };
  host->submit(std::move(job));
}

}  // namespace

Endpoints translate_endpoints() { return {{"POST", "/api/translate", Where::worker, translate_request}}; }

}  // namespace heed::serve
