// /v1/completions: continues texts.
#include "heed/serve/generate_api.h"

namespace heed::serve {
namespace {

// A text, texts, tokens or lists of tokens.
std::vector<std::vector<int64_t>> prompts_in(const JsonReader& body, const Tokenizer& tokenizer, std::vector<std::string>& texts) {
  const JsonReader prompt = body["prompt"];
  std::vector<std::vector<int64_t>> out;
  const auto add_text = [&](const std::string& text) {
    out.push_back(ids_in(tokenizer.encode(text)));
    texts.push_back(text);
  };
  const auto add_tokens = [&](const JsonReader& list) {
    out.emplace_back();
    std::vector<int32_t> ids;
    for (const JsonReader& each : list.list()) {
      out.back().push_back(each.whole(0, (int64_t{1} << 31) - 1));
      if (tokenizer.has(out.back().back())) ids.push_back(static_cast<int32_t>(out.back().back()));
    }
    texts.push_back(tokenizer.decode(ids));
  };
  if (prompt.json().is_string()) {
    add_text(prompt.text());
    return out;
  }
  const std::vector<JsonReader> items = prompt.list();
  require(!items.empty() && items.size() <= 65536, 400, "body: prompt: found ", items.size(), " items, expected 1 to 65536");
  if (items[0].json().is_number()) {
    add_tokens(prompt);
    return out;
  }
  require(items.size() <= 64, 400, "body: prompt: found ", items.size(), " prompts, expected at most 64");
  for (const JsonReader& each : items) each.json().is_array() ? add_tokens(each) : add_text(each.text());
  return out;
}

void add_logprobs(Json& to, const GeneratedToken& token, int64_t offset) {
  to["tokens"].push_back(token.token.text);
  to["token_logprobs"].push_back(token.token.logprob);
  to["text_offset"].push_back(offset);
  Json top = Json::object();
  for (const TokenScore& each : token.top) top[each.text] = each.logprob;
  to["top_logprobs"].push_back(std::move(top));
}

Json no_logprobs() {
  return {{"tokens", Json::array()}, {"token_logprobs", Json::array()}, {"top_logprobs", Json::array()}, {"text_offset", Json::array()}};
}

AnswerFormat completion_format(std::vector<std::string> echoed, int64_t choices, bool logprobs) {
  const auto before = [echoed = std::move(echoed), choices](int64_t index) {
    return echoed.empty() ? std::string() : echoed[static_cast<size_t>(index / choices)];
  };
  AnswerFormat out{.prefix = "cmpl-", .object = "text_completion", .chunk_object = "text_completion"};
  out.choice = [before, logprobs](int64_t index, const ChoiceText& choice) {
    Json scores = logprobs ? no_logprobs() : Json();
    auto offset = std::ssize(before(index));
    for (const GeneratedToken& each : choice.tokens) {
      add_logprobs(scores, each, offset);
      offset += std::ssize(each.token.text);
    }
    return Json{{"index", index}, {"text", before(index) + choice.text}, {"finish_reason", choice.finish}, {"logprobs", std::move(scores)}};
  };
  out.chunk = [before, logprobs](int64_t index, const GeneratedToken& token, bool first) {
    Json scores = logprobs ? no_logprobs() : Json();
    if (logprobs) add_logprobs(scores, token, 0);
    return Json{{"index", index},
                {"text", (first ? before(index) : "") + token.text},
                {"finish_reason", token.finish.empty() ? Json() : Json(token.finish)},
                {"logprobs", std::move(scores)}};
  };
  return out;
}

void complete(const Call& call) {
  const Json json = call.body();
  const JsonReader body(json, "body");
  const auto host = call.app.models().host(body.text("model"));
  GenerationRequest options = read_generation(call, body, *host, 16);
  if (body.has("logprobs")) options.top_logprobs = body["logprobs"].whole(0, 20);
  std::vector<std::string> texts;
  const std::vector<std::vector<int64_t>> prompts = prompts_in(body, host->tokenizer(), texts);
  if (!body.flag_or("echo", false)) texts.clear();
  answer_texts(call, body, host, options, prompts, completion_format(std::move(texts), options.choices, options.top_logprobs >= 0));
}

}  // namespace

Endpoints completion_endpoints() { return {{"POST", "/v1/completions", Where::worker, complete}}; }

}  // namespace heed::serve
