// Parts of the server on their own: targets, hosts, answers, texts that stop, edits of attention.
#include <gtest/gtest.h>

#include "heed/attention/edit.h"
#include "heed/attention/probabilities.h"
#include "heed/ops/ops.h"
#include "heed/serve/answer.h"
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
  for (const char* bad : {"", "x", "*", "/%", "/%4", "/%zz", "/a%00b", "/?a=%f"}) {
    Request none;
    EXPECT_FALSE(read_target(bad, none)) << bad;
  }
}

TEST(Guard, knows_this_machine) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1"}) EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"", "localhost.example.org", "127.0.0.1.example.org", "0.0.0.0", "10.0.0.1"})
    EXPECT_FALSE(is_loopback(host)) << host;
  const auto status = [](const std::map<std::string, std::string>& headers, const GuardOptions& options = {}) {
    const std::optional<Response> out = refused(options, {.method = "GET", .path = "/v1/models", .headers = headers});
    return out ? out->status : 200;
  };
  EXPECT_EQ(status({{"host", "localhost:8080"}}), 200);
  EXPECT_EQ(status({{"host", "[::1]:8080"}}), 200);
  EXPECT_EQ(status({{"host", "example.org:8080"}}), 403);
  EXPECT_EQ(status({}), 403);
  EXPECT_EQ(status({{"host", "localhost:8080"}, {"origin", "http://localhost:8080"}}), 200);
  EXPECT_EQ(status({{"host", "localhost:8080"}, {"origin", "http://localhost:9090"}}), 403);
  EXPECT_EQ(status({{"host", "localhost:8080"}, {"origin", "null"}}), 403);
  EXPECT_EQ(status({{"host", "localhost"}, {"origin", "https://a.org"}}, {.origins = {"https://a.org"}}), 200);
  EXPECT_EQ(status({{"host", "anything"}, {"authorization", "Bearer x"}}, {.token = "x"}), 200);
  EXPECT_EQ(status({{"host", "anything"}, {"authorization", "Bearer xy"}}, {.token = "x"}), 401);
}

TEST(Answers, have_the_status_of_their_error) {
  EXPECT_EQ(error_response(UsageError("a")).status, 400);
  EXPECT_EQ(error_response(FileError("a")).status, 400);
  EXPECT_EQ(error_response(Error("a")).status, 500);
  EXPECT_EQ(error_response(HttpError(418, "a")).status, 418);
  EXPECT_EQ(error_response(std::bad_alloc()).status, 503);
  EXPECT_EQ(error_response(429, "a").headers[0].first, "Retry-After");
  EXPECT_NE(dump("\xff"), "");  // not UTF-8
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

TEST(TextSoFar, shows_whole_characters) {
  const Tokenizer tokenizer = byte_tokenizer();
  TextSoFar text(tokenizer, {});
  EXPECT_EQ(text.add(0), "a");
  EXPECT_EQ(text.add(1), "");
  EXPECT_EQ(text.add(2), "\u00e9");
  EXPECT_EQ(text.add(1), "");
  EXPECT_NE(text.rest(), "");  // what is left is not a character
}

TEST(TextSoFar, holds_back_what_may_be_a_stop_text) {
  const Tokenizer tokenizer = byte_tokenizer();
  TextSoFar text(tokenizer, {"STOP", "never"});
  EXPECT_EQ(text.add(0), "a");
  EXPECT_EQ(text.add(3), "");  // STO
  EXPECT_EQ(text.add(0), "STOa");
  EXPECT_EQ(text.add(5), "Sx");  // S alone might have been its beginning
  EXPECT_EQ(text.add(3), "");
  EXPECT_FALSE(text.stopped());
  EXPECT_EQ(text.add(4), "");
  EXPECT_TRUE(text.stopped());
  EXPECT_EQ(text.rest(), "");
  TextSoFar other(tokenizer, {"STOP"});
  other.add(3);
  EXPECT_EQ(other.rest(), "STO");
}

TEST(RunCursor, reads_whole_lines_that_are_new) {
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

TEST(Workers, refuse_when_too_many_wait) {
  std::mutex gate;
  std::unique_lock closed(gate);
  Workers workers(1, 2);
  std::atomic<int> done{0};
  const auto task = [&] {
    const std::lock_guard wait(gate);
    ++done;
  };
  EXPECT_TRUE(workers.post(task));
  while (workers.waiting() > 0) std::this_thread::yield();  // the thread has it
  EXPECT_TRUE(workers.post(task));
  EXPECT_TRUE(workers.post(task));
  EXPECT_FALSE(workers.post(task));
  closed.unlock();
  while (done < 3) std::this_thread::yield();
}

TEST(AttentionEdit, changes_calls_of_its_thread) {
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
  EXPECT_EQ(attention(q, k, v).to_vector<float>(), plain);
}

}  // namespace
}  // namespace heed::serve
