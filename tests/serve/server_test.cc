// heed serve, the real program: every endpoint answers as /openapi.json says.
#include <gtest/gtest.h>
#include <zlib.h>

#include <future>
#include <set>

#include "heed/core/isa.h"
#include "heed/io/image.h"
#include "heed/io/markup.h"
#include "heed/models/generate.h"
#include "tests/serve/client.h"
#include "tests/serve/models.h"

namespace heed::test {
namespace {

// One server for all tests of this file.
class Serve : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    models_ = new ModelFolders;
    std::vector<std::string> arguments{"--runs", "", "--quiet"};
    for (const char* name :
         {"gpt2-lm", "llama-grouped", "bert-model", "bert-sentiment", "bert-tokens", "bert-masked", "marian-translate", "vit-classify"})
      arguments.push_back(models_->add(name));
    put(models_->path() / "llama-grouped/tokenizer_config.json",
        Json{{"chat_template", "{% for m in messages %}{{ m.content }} {% endfor %}w3"}}.dump());
    server_ = new Server(arguments);
  }
  static void TearDownTestSuite() {
    delete server_;
    delete models_;
  }

  static const Server& server() { return *server_; }
  static Json posted(const std::string& path, const Json& body) {
    const Answer answer = server_->post(path, body);
    EXPECT_EQ(answer.status, 200) << path << ": " << answer.body << answer.problem;
    return answer.json();
  }

  static inline ModelFolders* models_ = nullptr;
  static inline Server* server_ = nullptr;
};

std::vector<int64_t> numbers_in_words(const std::string& text) {
  std::vector<int64_t> out;
  std::istringstream words(text);
  for (std::string word; words >> word;) out.push_back(parse_number<int64_t>(word.substr(1)).value_or(-1));
  return out;
}

TEST_F(Serve, describes_itself) {
  EXPECT_EQ(server().get_path("/health").json(), Json({{"status", "ok"}}));
  EXPECT_NE(server().get_path("/").body.find("<html"), std::string::npos);
  const Json models = server().get_path("/v1/models").json();
  ASSERT_EQ(models["data"].size(), 8u);
  EXPECT_EQ(models["data"][0]["id"], "gpt2-lm");
  EXPECT_EQ(server().get_path("/v1/models/bert-model").json()["object"], "model");
  EXPECT_EQ(server().get_path("/v1/models/bert-modle").status, 404);
  const Json info = server().get_path("/api/info").json();
  std::map<std::string, std::string> tasks;
  for (const Json& each : info["models"]) tasks[each["id"].get<std::string>()] = each["task"].get<std::string>();
  EXPECT_EQ(tasks["gpt2-lm"], "generate");
  EXPECT_EQ(tasks["bert-model"], "embed");
  EXPECT_EQ(tasks["bert-tokens"], "tag");
  EXPECT_EQ(tasks["bert-masked"], "fill");
  EXPECT_EQ(tasks["marian-translate"], "translate");
  EXPECT_EQ(tasks["vit-classify"], "classify");
  EXPECT_NE(server().get_path("/metrics").body.find("heed_requests_total{route=\"/health\",status=\"200\"}"), std::string::npos);
}

// Every described path exists with its methods, and no other method is accepted.
TEST_F(Serve, describes_every_path) {
  const Json api = server().get_path("/openapi.json").json();
  ASSERT_TRUE(api.contains("paths"));
  for (const auto& [path, methods] : api["paths"].items()) {
    std::string target = path;
    for (size_t at; (at = target.find('{')) != std::string::npos;) target.replace(at, target.find('}') - at + 1, "x");
    for (const char* method : {"get", "post"}) {
      if (target == "/api/lab/x" && method == std::string("post")) continue;
      const Answer answer = server().send(request_text(method == std::string("get") ? "GET" : "POST", target));
      EXPECT_EQ(answer.status == 405, !methods.contains(method)) << method << ' ' << path << ": " << answer.status;
      EXPECT_NE(answer.error().find("there is no such path") != std::string::npos, true) << path;
    }
  }
}

TEST_F(Serve, caches_and_compresses) {
  const Answer plain = server().get_path("/openapi.json");
  const std::string etag = plain.headers.at("etag");
  EXPECT_EQ(server().get_path("/openapi.json", "If-None-Match: " + etag + "\r\n").status, 304);
  const Answer zipped = server().get_path("/openapi.json", "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(zipped.headers.at("content-encoding"), "gzip");
  EXPECT_LT(zipped.body.size(), plain.body.size() / 4);
  std::string text(plain.body.size(), '\0');
  z_stream stream{};
  ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zipped.body.data()));
  stream.avail_in = static_cast<uInt>(zipped.body.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  inflateEnd(&stream);
  EXPECT_EQ(text, plain.body);
  const Answer head = server().send(request_text("HEAD", "/openapi.json"), false);
  EXPECT_EQ(head.headers.at("content-length"), std::to_string(plain.body.size()));
}

TEST_F(Serve, keeps_connections) {
  Connection connection(server().port());
  for (int i = 0; i < 3; ++i) {
    connection.send(request_text("GET", "/health"));
    EXPECT_EQ(connection.answer().status, 200);
  }
  connection.send(request_text("GET", "/health") + request_text("GET", "/v1/models"));  // two requests without waiting for the first answer
  EXPECT_EQ(connection.answer().json()["status"], "ok");
  EXPECT_EQ(connection.answer().json()["object"], "list");
  connection.send(request_text("GET", "/health", "", "Connection: close\r\n"));
  EXPECT_EQ(connection.answer().headers.at("connection"), "close");
  EXPECT_TRUE(connection.at_end());
}

TEST_F(Serve, continues_texts_like_generate) {
  for (const char* name : {"gpt2-lm", "llama-grouped"}) {
    const Model model = load(fixture(name), {.weights = Weights::packed});
    GenerationOptions options = generation_options(model);
    options.max_length = 0, options.min_length = options.min_new_tokens = 0, options.beams = 1, options.sample = false,
    options.repetition_penalty = 1;
    options.max_new_tokens = 12;
    const std::vector<int64_t> prompt{5, 6, 7};
    const std::vector<int64_t> expected =
        generate(model, {{"input_ids", Tensor::from(prompt, {1, 3}, kCpu)}}, options).to_vector<int64_t>();
    const Json answer = posted("/v1/completions", {{"model", name}, {"prompt", "w5 w6 w7"}, {"max_tokens", 12}, {"temperature", 0}});
    std::vector<int64_t> found = numbers_in_words(answer["choices"][0]["text"].get<std::string>());
    EXPECT_GE(found.size(), 1u);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin() + 3)) << name << answer;
    EXPECT_EQ(answer["usage"]["prompt_tokens"], 3);
    EXPECT_EQ(answer["object"], "text_completion");
    const Json lists =
        posted("/v1/completions", {{"model", name}, {"prompt", {{8, 9}, {5, 6, 7}}}, {"max_tokens", 12}, {"temperature", 0}});
    EXPECT_EQ(lists["choices"].at(1)["text"], answer["choices"][0]["text"]);
  }
}

std::vector<Json> events_of(const std::string& body) {
  std::vector<Json> out;
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("data: {")) out.push_back(Json::parse(line.substr(6)));
  return out;
}

TEST_F(Serve, streams_texts) {
  Json request{{"model", "gpt2-lm"}, {"prompt", "w5 w6"}, {"max_tokens", 10}, {"seed", 4}, {"stream_options", {{"include_usage", true}}}};
  const Json whole = posted("/v1/completions", request);
  request["stream"] = true;
  const Answer answer = server().post("/v1/completions", request);
  EXPECT_EQ(answer.headers.at("content-type"), "text/event-stream");
  EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
  std::string text;
  const std::vector<Json> events = events_of(answer.body);
  for (const Json& each : events)
    for (const Json& choice : each["choices"]) text += choice["text"].get<std::string>();
  EXPECT_EQ(text, whole["choices"][0]["text"]);
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
}

TEST_F(Serve, samples_by_seed_and_scores_tokens) {
  Json request{{"model", "gpt2-lm"}, {"prompt", "w5 w6"}, {"max_tokens", 8}, {"seed", 4}, {"n", 3}, {"logprobs", 4}};
  const Json one = posted("/v1/completions", request), two = posted("/v1/completions", request);
  EXPECT_EQ(one["choices"], two["choices"]);
  ASSERT_EQ(one["choices"].size(), 3u);
  EXPECT_NE(one["choices"][0]["text"], one["choices"][1]["text"]);
  const Json& scores = one["choices"][0]["logprobs"];
  EXPECT_EQ(scores["tokens"].size(), scores["token_logprobs"].size());
  EXPECT_EQ(scores["top_logprobs"][0].size(), 4u);
  for (const Json& each : scores["token_logprobs"]) EXPECT_LE(each.get<double>(), 0);
  Json cold = request, best = request;
  cold["temperature"] = 3e-153, best["temperature"] = 0;
  EXPECT_EQ(posted("/v1/completions", cold)["choices"], posted("/v1/completions", best)["choices"]);
  request["seed"] = -5;
  EXPECT_NE(posted("/v1/completions", request)["choices"], one["choices"]);
}

TEST_F(Serve, stops_at_texts) {
  const Json request{{"model", "gpt2-lm"}, {"prompt", "w5 w6 w7"}, {"max_tokens", 12}, {"temperature", 0}};
  const std::string text = posted("/v1/completions", request)["choices"][0]["text"].get<std::string>();
  std::istringstream words(text);
  std::string word;
  words >> word >> word >> word;  // the third one
  Json stopped = request;
  stopped["stop"] = word;
  const Json choice = posted("/v1/completions", stopped)["choices"][0];
  EXPECT_EQ(choice["text"], text.substr(0, text.find(word)));
  EXPECT_EQ(choice["finish_reason"], "stop");
}

TEST_F(Serve, chats_with_a_template) {
  const Json messages = {{{"role", "user"}, {"content", "w5 w6"}}};
  const Json chat = posted(
      "/v1/chat/completions",
      {{"model", "llama-grouped"}, {"messages", messages}, {"max_tokens", 6}, {"temperature", 0}, {"logprobs", true}, {"top_logprobs", 2}});
  const Json text = posted("/v1/completions", {{"model", "llama-grouped"}, {"prompt", "w5 w6 w3"}, {"max_tokens", 6}, {"temperature", 0}});
  EXPECT_EQ(chat["choices"][0]["message"]["content"], text["choices"][0]["text"]);
  EXPECT_EQ(chat["choices"][0]["logprobs"]["content"][0]["top_logprobs"].size(), 2u);
  const Answer refused = server().post("/v1/chat/completions", {{"model", "gpt2-lm"}, {"messages", messages}});
  EXPECT_EQ(refused.status, 422);
  EXPECT_NE(refused.error().find("no chat template"), std::string::npos);
  const Answer stream =
      server().post("/v1/chat/completions", {{"model", "llama-grouped"}, {"messages", messages}, {"max_tokens", 3}, {"stream", true}});
  EXPECT_EQ(events_of(stream.body)[0]["choices"][0]["delta"]["role"], "assistant");
}

// The same requests concurrently and one after the other.
TEST_F(Serve, answers_do_not_depend_on_the_batch) {
  if (instruction_set() == "baseline") GTEST_SKIP() << "without vector instructions, matrix products depend on the number of rows";
  std::vector<std::pair<std::string, Json>> requests;
  for (int i = 0; i < 24; ++i) {
    std::string prompt = "w1";
    for (int j = 0; j < i % 7; ++j) prompt += " w" + std::to_string((i * 13 + j * 7) % 200);
    requests.emplace_back(
        "/v1/completions",
        Json{{"model", "gpt2-lm"}, {"prompt", prompt}, {"max_tokens", 5 + i % 9}, {"seed", i}, {"logprobs", 3}, {"n", 1 + i % 2}});
    requests.emplace_back("/v1/embeddings", Json{{"model", "bert-model"}, {"input", prompt.substr(0, 40)}, {"encoding_format", "base64"}});
    requests.emplace_back("/api/classify", Json{{"model", "bert-sentiment"}, {"text", prompt}});
    requests.emplace_back("/api/classify", Json{{"model", "bert-tokens"}, {"text", prompt}});
    requests.emplace_back("/api/classify", Json{{"model", "bert-masked"}, {"text", prompt + " [MASK]"}});
    requests.emplace_back("/api/translate", Json{{"model", "marian-translate"}, {"text", prompt}, {"beams", 1 + i % 2}, {"max_tokens", 8}});
    const std::string png =
        png_bytes({.width = 32, .height = 32, .pixels = std::vector<uint8_t>(32 * 32 * 3, static_cast<uint8_t>(9 * i))});
    requests.emplace_back("/api/classify", Json{{"model", "vit-classify"}, {"image", base64(std::as_bytes(std::span(png)))}});
  }
  const auto answer_to = [](const auto& request) {
    Json out = posted(request.first, request.second);
    for (const char* key : {"id", "created"}) out.erase(key);
    return out;
  };
  std::vector<Json> alone;
  for (const auto& each : requests) alone.push_back(answer_to(each));
  std::vector<std::future<Json>> together;
  for (const auto& each : requests) together.push_back(std::async(std::launch::async, answer_to, each));
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(together[i].get(), alone[i]) << requests[i].second;
}

TEST_F(Serve, embeds_texts) {
  const Json answer = posted("/v1/embeddings", {{"model", "bert-model"}, {"input", {"w5 w6", "w7"}}});
  ASSERT_EQ(answer["data"].size(), 2u);
  double length = 0;
  for (const Json& each : answer["data"][1]["embedding"]) length += each.get<double>() * each.get<double>();
  EXPECT_NEAR(length, 1, 1e-5);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(posted("/v1/embeddings", {{"model", "bert-model"}, {"input", Json::array({5, 6})}})["data"][0]["embedding"],
            answer["data"][0]["embedding"]);
  EXPECT_EQ(posted("/v1/embeddings", {{"model", "bert-model"}, {"input", "w5"}, {"dimensions", 3}})["data"][0]["embedding"].size(), 3u);
  EXPECT_EQ(server().post("/v1/embeddings", {{"model", "vit-classify"}, {"input", "a"}}).status, 422);
  // More tokens than fit into one call.
  Json many = Json::array();
  for (int i = 0; i < 700; ++i) many.push_back("w" + std::to_string(i % 99) + " w1 w2 w3 w4 w5 w6");
  const Json all = posted("/v1/embeddings", {{"model", "bert-model"}, {"input", many}})["data"];
  ASSERT_EQ(all.size(), many.size());
  for (const size_t i : {0u, 584u, 585u, 699u}) {
    const Json one = posted("/v1/embeddings", {{"model", "bert-model"}, {"input", many[i]}})["data"][0]["embedding"];
    for (size_t j = 0; j < one.size(); ++j) EXPECT_NEAR(one[j].get<double>(), all[i]["embedding"][j].get<double>(), 1e-5) << i;
  }
}

TEST_F(Serve, labels_texts_words_masks_and_images) {
  const Json texts = posted("/api/classify", {{"model", "bert-sentiment"}, {"text", {"w5 w6", "w7"}}, {"top", 0}});
  EXPECT_EQ(texts["results"].size(), 2u);
  double sum = 0;
  for (const Json& each : texts["results"][0]["labels"]) sum += each["score"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-5);
  const Json words = posted("/api/classify", {{"model", "bert-tokens"}, {"text", "w5 w6"}});
  EXPECT_EQ(words["results"][0]["words"][1]["text"], "w6");
  const Json masks = posted("/api/classify", {{"model", "bert-masked"}, {"text", "w5 [MASK] w6"}, {"top", 3}});
  EXPECT_EQ(masks["results"][0]["masks"][0]["labels"].size(), 3u);
  EXPECT_EQ(server().post("/api/classify", {{"model", "bert-masked"}, {"text", "w5"}}).status, 400);
  const std::string png = png_bytes({.width = 32, .height = 32, .pixels = std::vector<uint8_t>(32 * 32 * 3, 99)});
  const std::string data = base64(std::as_bytes(std::span(png)));
  const Json image = posted("/api/classify", {{"model", "vit-classify"}, {"image", "data:image/png;base64," + data}});
  EXPECT_FALSE(image["results"][0]["labels"].empty());
  EXPECT_EQ(server().post("/api/classify", {{"model", "vit-classify"}, {"image", data.substr(0, 40)}}).status, 400);
  EXPECT_EQ(server().post("/api/classify", {{"model", "bert-sentiment"}, {"image", data}}).status, 422);
}

TEST_F(Serve, translates_and_tokenizes) {
  const Json translated =
      posted("/api/translate", {{"model", "marian-translate"}, {"text", {"w5 w6", ""}}, {"beams", 2}, {"max_tokens", 8}});
  EXPECT_EQ(translated["results"].size(), 2u);
  EXPECT_EQ(translated["results"][1]["text"], "");
  const Json tokens = posted("/api/tokenize", {{"model", "gpt2-lm"}, {"text", "w5  w6"}});
  EXPECT_EQ(tokens["tokens"][1]["id"], 6);
  EXPECT_EQ(tokens["tokens"][1]["begin"], 4);
}

}  // namespace
}  // namespace heed::test
