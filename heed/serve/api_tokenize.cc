// /api/tokenize: the tokens of a text.
#include "heed/io/json_reader.h"
#include "heed/serve/app.h"

namespace heed::serve {
namespace {

void tokenize_request(const Call& call) {
  const Json json = call.body();
  const JsonReader body(json, "body");
  const auto host = call.app.models().host(body.text("model"));
  require(!host->info().image, 422, host->info().id, ": takes images, not text");
  const bool target = body.flag_or("target", false);
  require(!target || host->info().task == ServedTask::translate, 422, host->info().id,
          ": does not translate, so it has no target tokenizer");
  const Tokenizer tokenizer = target ? host->target_tokenizer() : host->tokenizer();
  const EncodeOptions options{.add_special_tokens = body.flag_or("special", true)};
  const Encoding encoding =
      body.has("pair") ? tokenizer.encode(body.text("text"), body.text("pair"), options) : tokenizer.encode(body.text("text"), options);
  Json tokens = Json::array();
  for (size_t i = 0; i < encoding.ids.size(); ++i)
    tokens.push_back({{"id", encoding.ids[i]},
                      {"text", tokenizer.display(encoding.ids[i])},
                      {"begin", encoding.offsets[i].begin},
                      {"end", encoding.offsets[i].end},
                      {"special", encoding.special_mask[i] != 0},
                      {"type", encoding.type_ids[i]}});
  call.reply({{"model", host->info().id}, {"tokens", std::move(tokens)}, {"decoded", tokenizer.decode(encoding.ids)}});
}

}  // namespace

Endpoints tokenize_endpoints() { return {{"POST", "/api/tokenize", Where::worker, tokenize_request}}; }

}  // namespace heed::serve
