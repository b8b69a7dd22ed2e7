// Unit tests of parts of the server: targets, hosts, answers, stop texts, edits of attention.
#include <gtest/gtest.h>

#include <future>
#include <set>

#include "heed/attention/edit.h"
#include "heed/attention/probabilities.h"
#include "heed/ops/ops.h"
#include "heed/serve/answer.h"
#include "heed/serve/app.h"
#include "heed/serve/embedded.h"
#include "heed/serve/guard.h"
#include "heed/serve/request_target.h"
#include "heed/serve/run_files.h"
#include "heed/serve/stop_texts.h"
#include "heed/serve/workers.h"
#include "tests/io/files.h"

namespace heed::serve {
namespace {

TEST(RequestTarget, is_decoded_by_segment) {
  Request request;
  ASSERT_TRUE(read_target("/v1/models/a%2Fb%20c?x=1+2&y=%C3%A9&z", request));
  EXPECT_EQ(request.segments, (std::vector<std::string>{"v1", "models", "a/b c"}));
  EXPECT_EQ(request.query, (std::map<std::string, std::string>{{"x", "1 2"}, {"y", "\u00e9"}, {"z", ""}}));
  for (const char* target : {"http://localhost:80/?x=1", "http://localhost:80"}) {
    Request absolute{.headers = {{"host", "example.org"}}};
    ASSERT_TRUE(read_target(target, absolute));
    EXPECT_EQ(absolute.header("host"), "localhost:80");
    EXPECT_EQ(absolute.path, "/");
  }
  for (const char* bad : {"", "x", "*", "https://localhost/", "/%", "/%4", "/%zz", "/a%00b", "/?a=%f"}) {
    Request none;
    EXPECT_FALSE(read_target(bad, none)) << bad;
  }
}

TEST(Guard, checks_host_origin_and_token) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1"}) EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"", "localhost.example.org", "127.0.0.1.example.org", "0.0.0.0", "10.0.0.1"})
    EXPECT_FALSE(is_loopback(host)) << host;
  const auto status = [](const std::map<std::string, std::string>& headers, const GuardOptions& options = {}) {
    const std::optional<Response> out = refused(options, {.method = "GET", .path = "/v1/models", .headers = headers});
    return out ? out->status : 200;
  };
  EXPECT_EQ(status({{"host", "localhost:8080"}}), 200);
  EXPECT_EQ(status({{"host", "[::1]:8080"}}), 200);
  EXPECT_EQ(status({{"host", "LocalHost:8080"}}), 200);
  for (const char* host :
       {"[::1", "[::1]example.org", "[::1]example.org:80", "::1", "localhost:example.org", "localhost:80:80", "[", ":80"})
    EXPECT_EQ(status({{"host", host}}), 403) << host;
  EXPECT_EQ(status({{"host", "example.org:8080"}}), 403);
  EXPECT_EQ(status({}), 403);
  EXPECT_EQ(status({{"host", "localhost:8080"}, {"origin", "http://localhost:8080"}}), 200);
  EXPECT_EQ(status({{"host", "localhost:8080"}, {"origin", "http://localhost:9090"}}), 403);
  EXPECT_EQ(status({{"host", "localhost:8080"}, {"origin", "null"}}), 403);
  EXPECT_EQ(status({{"host", "localhost"}, {"origin", "https://a.org"}}, {.origins = {"https://a.org"}}), 200);
  EXPECT_EQ(status({{"host", "anything"}, {"authorization", "Bearer x"}}, {.token = "x"}), 200);
  EXPECT_EQ(status({{"host", "anything"}, {"authorization", "bearer x"}}, {.token = "x"}), 200);
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer xy", "Bearer X", "Basic x", "x"})
    EXPECT_EQ(status({{"host", "anything"}, {"authorization", wrong}}, {.token = "x"}), 401) << wrong;
}

TEST(OpenApi, describes_every_endpoint) {
  std::set<std::string> served, described;
  for (const Endpoint& each : all_endpoints()) served.insert((each.method == "GET" ? "get " : "post ") + each.path);
  const Json api = Json::parse(openapi_file());
  for (const auto& [path, methods] : api["paths"].items())
    for (const auto& [method, ignored] : methods.items()) described.insert(method + " " + path);
  EXPECT_EQ(served, described);
}

TEST(Answers, have_the_status_of_their_error) {
  EXPECT_EQ(error_response(UsageError("a")).status, 400);
  EXPECT_EQ(error_response(FileError("a")).status, 400);
  EXPECT_EQ(error_response(Error("a")).status, 500);
  EXPECT_EQ(error_response(HttpError(418, "a")).status, 418);
  EXPECT_EQ(error_response(std::bad_alloc()).status, 503);
  EXPECT_EQ(error_response(StoppedError("a")).status, 499);
  EXPECT_EQ(error_response(429, "a").headers[0].first, "Retry-After");
  EXPECT_NE(dump("\xff"), "");  // not UTF-8
}

TEST(Answers, are_compressed_and_cached_on_request) {
  const auto accepts = [](const char* value) { return accepts_gzip({.headers = {{"accept-encoding", value}}}); };
  for (const char* yes : {"gzip", "br, gzip", "GZIP", "gzip;q=0.5", "gzip ; q=1.0, identity"}) EXPECT_TRUE(accepts(yes)) << yes;
  for (const char* no : {"", "br", "gzip;q=0", "gzip; q=0.000", "xgzip", "identity, gzip;Q=0"}) EXPECT_FALSE(accepts(no)) << no;
  const auto answer = [](const std::string& method, const std::string& known) {
    Response out{.body = std::string(5000, 'x')};
    finish_response({.method = method, .headers = {{"if-none-match", known}, {"accept-encoding", "gzip"}}}, out);
    return out;
  };
  const auto header = [](const Response& response, const std::string& name) {
    for (const auto& [each, value] : response.headers)
      if (each == name) return value;
    return std::string();
  };
  const std::string tag = header(answer("GET", ""), "ETag");
  ASSERT_TRUE(tag.starts_with("W/\"")) << tag;
  for (const std::string& known : {tag, tag.substr(2), "\"a\", " + tag, std::string("*")}) {
    const Response same = answer("GET", known);
    EXPECT_EQ(same.status, 304) << known;
    EXPECT_EQ(same.body, "");
    EXPECT_EQ(header(same, "Vary"), "Accept-Encoding");
    EXPECT_EQ(answer("HEAD", known).status, 304);
    EXPECT_EQ(answer("POST", known).status, 200);
  }
  EXPECT_EQ(answer("GET", "\"a\"").status, 200);
}

// "a", then the two bytes of an accented e, then words.
Tokenizer byte_tokenizer() {
  return Tokenizer::from_json(Json{{"decoder", {{"type", "ByteLevel"}}},
                                   {"model",
                                    {{"type", "BPE"},
                                     {"vocab", {{"a", 0}, {"\u00c3", 1}, {"\u00a9", 2}, {"STO", 3}, {"P", 4}, {"Sx", 5}}},
                                     {"merges", Json::array()}}}}
                                  .dump(),
                              "test");
}

TEST(TextSoFar, returns_whole_characters) {
  const Tokenizer tokenizer = byte_tokenizer();
  TextSoFar text(tokenizer, {});
  EXPECT_EQ(text.add(0), "a");
  EXPECT_EQ(text.add(1), "");
  EXPECT_EQ(text.add(2), "\u00e9");
  EXPECT_EQ(text.add(1), "");
  EXPECT_NE(text.rest(), "");  // the remaining bytes are not a complete character
}

// After so many invalid bytes they are returned as they are. A byte that completes a character then makes the text shorter.
TEST(TextSoFar, accepts_invalid_bytes) {
  const Tokenizer tokenizer = byte_tokenizer();
  TextSoFar text(tokenizer, {});
  std::string shown;
  for (int i = 0; i < 8; ++i) shown += text.add(1);
  EXPECT_NE(shown, "");
  text.add(2);
  EXPECT_NO_THROW(text.rest());
}

TEST(TextSoFar, withholds_text_that_could_begin_a_stop_text) {
  const Tokenizer tokenizer = byte_tokenizer();
  TextSoFar text(tokenizer, {"STOP", "never"});
  EXPECT_EQ(text.add(0), "a");
  EXPECT_EQ(text.add(3), "");  // STO
  EXPECT_EQ(text.add(0), "STOa");
  EXPECT_EQ(text.add(5), "Sx");  // S alone could have been the beginning of STOP
  EXPECT_EQ(text.add(3), "");
  EXPECT_FALSE(text.stopped());
  EXPECT_EQ(text.add(4), "");
  EXPECT_TRUE(text.stopped());
  EXPECT_EQ(text.rest(), "");
  TextSoFar other(tokenizer, {"STOP"});
  other.add(3);
  EXPECT_EQ(other.rest(), "STO");
}

TEST(RunCursor, reads_complete_new_lines) {
  const test::Folder run;
  test::put(run / "metrics.jsonl", "{\"kind\":\"step\",\"epoch\":1,\"step\":20,\"loss\":0.5,\"bad\":null}\n{\"kind\":\"ep");
  RunCursor cursor = RunCursor::parse("0-0-0");
  EXPECT_EQ(cursor.next_events(run.path()), "id: 58-0-0\nevent: step\ndata: {\"epoch\":1,\"figures\":{\"loss\":0.5},\"step\":20}\n\n");
  EXPECT_EQ(cursor.next_events(run.path()), "");
  test::put(run / "log.txt", "hello\n");
  EXPECT_EQ(cursor.next_events(run.path()), "id: 58-0-6\nevent: log\ndata: {\"line\":\"hello\"}\n\n");
  test::put(run / "metrics.jsonl", "");  // rewound
  EXPECT_EQ(cursor.next_events(run.path()), "");
  EXPECT_EQ(cursor.text(), "0-0-6");
  for (const char* bad : {"", "1", "1-2", "1-2-x", "1-2--3", "1-2-3-4"}) EXPECT_THROW(RunCursor::parse(bad), FileError) << bad;
}

TEST(RunCursor, cuts_lines_that_are_too_long) {
  const test::Folder run;
  test::put(run / "metrics.jsonl", "{\"long\":\"" + std::string(3 << 20, 'x') + "\"}\n{\"kind\":\"step\",\"epoch\":1,\"step\":20}\n");
  test::put(run / "log.txt", std::string(3 << 20, 'x') + "end\nnext\n");
  RunCursor cursor = RunCursor::parse("0-0-0");
  std::string events;
  for (int i = 0; i < 10; ++i) events += cursor.next_events(run.path());
  EXPECT_EQ(cursor.text(), RunCursor::at_end(run.path()).text());
  EXPECT_NE(events.find("\"step\":20"), std::string::npos);
  EXPECT_NE(events.find("data: {\"line\":\"end\"}\n"), std::string::npos);
  EXPECT_NE(events.find("data: {\"line\":\"next\"}\n"), std::string::npos);
}

// A request without a connection.
class LooseExchange : public Exchange {
 public:
  explicit LooseExchange(Request request) : request_(std::move(request)) {}
  const Request& request() const override { return request_; }
  void reply(Response response) override { answer_.set_value(std::move(response)); }
  void begin(Response) override {}
  bool write(std::string) override { return true; }
  void end() override {}
  bool cancelled() const override { return false; }
  std::future<Response> answer() { return answer_.get_future(); }

 private:
  const Request request_;
  std::promise<Response> answer_;
};

std::future<Response> answer_of(App& app, const std::string& method, const std::string& target, const std::string& body = "") {
  Request request{.method = method, .body = body, .headers = {{"host", "localhost"}}};
  EXPECT_TRUE(read_target(target, request));
  const auto exchange = std::make_shared<LooseExchange>(std::move(request));
  app.handle(exchange);
  return exchange->answer();
}

// A training may take seconds until it has its folder.
TEST(RunStarts, leave_other_requests_alone) {
  const test::Folder folder;
  const Path program = folder / "train";
  test::put(program, "#!/bin/sh\nfor i in $(seq 100); do [ -e \"$0.end\" ] || sleep 0.05; done\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  App app({.models = {.runs = folder / "runs"}, .program = program.string()}, [] { return int64_t{0}; });
  std::vector<std::future<Response>> starts;
  for (int i = 0; i < 4; ++i)
    starts.push_back(answer_of(app, "POST", "/api/runs", R"({"task": "classify", "settings": {"data": "shapes:200"}})"));
  EXPECT_EQ(answer_of(app, "GET", "/api/runs").get().status, 200);
  for (const std::future<Response>& each : starts) EXPECT_EQ(each.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  test::put(folder / "train.end", "");
  for (std::future<Response>& each : starts) EXPECT_EQ(each.get().status, 201);
}

TEST(Workers, refuse_jobs_when_their_queue_is_full) {
  std::mutex gate;
  std::unique_lock closed(gate);
  Workers workers(1, 2);
  std::atomic<int> done{0};
  const auto task = [&] {
    const std::lock_guard wait(gate);
    ++done;
  };
  EXPECT_TRUE(workers.post(task));
  while (workers.waiting() > 0) std::this_thread::yield();  // the thread has taken the job
  EXPECT_TRUE(workers.post(task));
  EXPECT_TRUE(workers.post(task));
  EXPECT_FALSE(workers.post(task));
  closed.unlock();
  while (done < 3) std::this_thread::yield();
  workers.stop();
  EXPECT_FALSE(workers.post(task));
  workers.post_always(task);
  EXPECT_EQ(workers.waiting(), 0u);
}

TEST(AttentionEdit, applies_to_calls_of_its_thread) {
  Rng rng(1);
  const Tensor q = random_normal({1, 2, 4, 8}, 0, 1, rng, kCpu), k = random_normal({1, 2, 4, 8}, 0, 1, rng, kCpu),
               v = random_normal({1, 2, 4, 8}, 0, 1, rng, kCpu);
  const std::vector<float> plain = attention(q, k, v).to_vector<float>();
  {
    const AttentionEdit edit({.off = {{1, 0}}});
    EXPECT_EQ(attention(q, k, v).to_vector<float>(), plain);  // call 0
    const std::vector<float> off = attention(q, k, v).to_vector<float>();
    for (size_t i = 0; i < 32; ++i) EXPECT_EQ(off[i], 0);
    for (size_t i = 32; i < 64; ++i) EXPECT_EQ(off[i], plain[i]);
  }
  {
    const AttentionEdit edit({.beta = 3, .hidden = {2}});
    AttentionOptions expected{.beta = 1 / std::sqrt(8.0f) * 3};
    expected.terms.emplace_back(Mask{converted(Tensor::from(std::vector<uint8_t>{1, 1, 0, 1}, {1, 1, 1, 4}, kCpu), DType::boolean)});
    const std::vector<float> changed = attention(q, k, v).to_vector<float>();
    const AttentionEdit none({});
    EXPECT_EQ(changed, attention(q, k, v, expected).to_vector<float>());
  }
  {
    const AttentionEdit edit({.beta = 3});
    EXPECT_THROW(attention(q, slice(k, 3, 0, 7), v), Error);
    EXPECT_NE(attention(q, k, v).to_vector<float>(), plain);
  }
  EXPECT_EQ(attention(q, k, v).to_vector<float>(), plain);
}

}  // namespace
}  // namespace heed::serve
