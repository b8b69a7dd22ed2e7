// /v1/embeddings: vectors of texts.
#include <cmath>

#include "heed/io/json_reader.h"
#include "heed/io/markup.h"
#include "heed/serve/app.h"
#include "heed/serve/tensor_json.h"

namespace heed::serve {
namespace {

Encoding encoding_of(const JsonReader& ids, int64_t vocabulary) {
  Encoding out;
  for (const JsonReader& each : ids.list()) out.ids.push_back(static_cast<int32_t>(each.whole(0, vocabulary - 1)));
  out.type_ids.resize(out.ids.size());
  return out;
}

// A text, texts, tokens or lists of tokens.
std::vector<Encoding> inputs_in(const JsonReader& input, const Tokenizer& tokenizer, const EncodeOptions& options, int64_t vocabulary) {
  const auto encode = [&](const JsonReader& text) { return tokenizer.encode(text.text(), options); };
  if (input.json().is_string()) return {encode(input)};
  const std::vector<JsonReader> items = input.list();
  require(!items.empty() && items.size() <= 2048, 400, "body: input: found ", items.size(), " items, expected 1 to 2048");
  if (items[0].json().is_number()) return {encoding_of(input, vocabulary)};
  std::vector<Encoding> out;
  for (const JsonReader& each : items) out.push_back(each.json().is_array() ? encoding_of(each, vocabulary) : encode(each));
  return out;
}

Json floats_json(const std::vector<float>& values) {
  Json out = Json::array();
  for (const float each : values) out.push_back(short_number(each));
  return out;
}

// The first numbers, normalized again.
void shorten(std::vector<float>& vector, int64_t dimensions) {
  if (dimensions <= 0 || dimensions >= std::ssize(vector)) return;
  vector.resize(static_cast<size_t>(dimensions));
  double sum = 0;
  for (const float each : vector) sum += static_cast<double>(each) * static_cast<double>(each);
  const auto scale = static_cast<float>(1 / std::max(std::sqrt(sum), 1e-12));
  for (float& each : vector) each *= scale;
}

void embed_texts(const Call& call) {
  const Json json = call.body();
  const JsonReader body(json, "body");
  const auto host = call.app.models().host(body.text("model"));
  const ModelInfo& info = host->info();
  require(info.embeddings, 422, info.id, ": ", info.architecture, " gives no embeddings of texts");
  const std::string format = body.text_or("encoding_format", "float");
  require(format == "float" || format == "base64", 400, "body: encoding_format: found ", in_quotes(format, 20),
          ", expected float or base64");
  const int64_t dimensions = body.has("dimensions") ? body["dimensions"].whole(1) : 0;
  const int64_t own = info.embed.max_length, most = own > 0 ? std::min(own, info.max_tokens) : info.max_tokens;
  BatchJob job{.sentences = inputs_in(body["input"], host->tokenizer(), {.max_length = most}, info.vocabulary),
               .failed = call.failed(),
               .cancelled = call.cancelled()};
  int64_t tokens = 0;
  for (const Encoding& each : job.sentences) {
    require(each.size() > 0, 400, "body: input: found a text without tokens, expected one or more");
    require(each.size() <= info.max_tokens, 400, "body: input: found ", each.size(), " tokens, expected at most ", info.max_tokens);
    tokens += each.size();
  }
  job.done = [call, tokens, format, dimensions, id = info.id](const LoadedModel&, const Tensors& rows) {
    call.reply_later([=] {
      Json data = Json::array();
      for (size_t i = 0; i < rows.size(); ++i) {
        std::vector<float> vector = rows[i].to_vector<float>();
        shorten(vector, dimensions);
        data.push_back({{"object", "embedding"},
                        {"index", i},
                        {"embedding", format == "base64" ? Json(base64(std::as_bytes(std::span(vector)))) : floats_json(vector)}});
      }
      return Json{
          {"object", "list"}, {"data", std::move(data)}, {"model", id}, {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
    });
  };
  host->submit(std::move(job));
}

}  // namespace

Endpoints embedding_endpoints() { return {{"POST", "/v1/embeddings", Where::worker, embed_texts}}; }

}  // namespace heed::serve
