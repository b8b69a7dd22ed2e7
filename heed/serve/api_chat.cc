// /v1/chat/completions: answers a conversation, with the chat template of the model.
#include "heed/serve/chat_template.h"
#include "heed/serve/generate_api.h"

namespace heed::serve {
namespace {

Json messages_in(const JsonReader& body) {
  Json out = Json::array();
  for (const JsonReader& message : body["messages"].list()) {
    std::string content;
    if (message.has("content")) {
      if (message["content"].json().is_string())
        content = message.text("content");
      else
        for (const JsonReader& part : message["content"].list()) {
          require(part.text_or("type", "text") == "text", 400, part.place(), ": expected a part of type text");
          content += part.text("text");
        }
    }
    out.push_back({{"role", message.text("role")}, {"content", std::move(content)}});
  }
  require(!out.empty(), 400, "body: messages: found none, expected one or more");
  return out;
}

Json token_json(const TokenScore& token) {
  std::vector<int> bytes;
  for (const char each : token.text) bytes.push_back(static_cast<unsigned char>(each));
  return {{"token", token.text}, {"logprob", token.logprob}, {"bytes", std::move(bytes)}};
}

void add_chat_logprobs(Json& to, const GeneratedToken& token) {
  Json out = token_json(token.token);
  out["top_logprobs"] = Json::array();
  for (const TokenScore& each : token.top) out["top_logprobs"].push_back(token_json(each));
  to["content"].push_back(std::move(out));
}

AnswerFormat chat_format(bool logprobs) {
  AnswerFormat out{.prefix = "chatcmpl-", .object = "chat.completion", .chunk_object = "chat.completion.chunk"};
  out.choice = [logprobs](int64_t index, const ChoiceText& choice) {
    Json scores = logprobs ? Json{{"content", Json::array()}} : Json();
    for (const GeneratedToken& each : choice.tokens) add_chat_logprobs(scores, each);
    return Json{{"index", index},
                {"message", {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}}},
                {"finish_reason", choice.finish},
                {"logprobs", std::move(scores)}};
  };
  out.chunk = [logprobs](int64_t index, const GeneratedToken& token, bool first) {
    Json scores = logprobs ? Json{{"content", Json::array()}} : Json(), delta{{"content", token.text}};
    if (logprobs) add_chat_logprobs(scores, token);
    if (first) delta["role"] = "assistant";
    return Json{{"index", index},
                {"delta", std::move(delta)},
                {"finish_reason", token.finish.empty() ? Json() : Json(token.finish)},
                {"logprobs", std::move(scores)}};
  };
  return out;
}

void answer_chat(const Call& call) {
  const Json json = call.body();
  const JsonReader body(json, "body");
  const auto host = call.app.models().host(body.text("model"));
  GenerationRequest options = read_generation(call, body, *host, 0);
  if (body.flag_or("logprobs", false)) options.top_logprobs = body.has("top_logprobs") ? body["top_logprobs"].whole(0, 20) : 0;
  const Json messages = messages_in(body);
  require(host->info().chat, 422, host->info().id, ": the model has no chat template; /v1/completions continues texts");
  std::string prompt;
  try {
    prompt = chat_prompt(host->info().folder, messages);
  } catch (const FileError& error) {
    throw HttpError(422, error.what());
  }
  const Encoding encoding = host->tokenizer().encode(prompt, {.add_special_tokens = false});
  answer_texts(call, body, host, options, {ids_in(encoding)}, chat_format(options.top_logprobs >= 0));
}

}  // namespace

Endpoints chat_endpoints() { return {{"POST", "/v1/chat/completions", Where::worker, answer_chat}}; }

}  // namespace heed::serve
