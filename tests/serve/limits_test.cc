// heed serve with bad clients: malformed, large, slow and too many requests, clients that disconnect; and how it starts.
#include <gtest/gtest.h>

#include <random>

#include "tests/cli/program.h"
#include "tests/serve/client.h"
#include "tests/serve/models.h"

namespace heed::test {
namespace {

using std::chrono::milliseconds;

class ServeLimits : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    models_ = new ModelFolders;
    server_ =
        new Server({models_->add("gpt2-lm"), "--runs", "", "--quiet", "--max-body", "100000", "--max-connections", "40", "--idle", "2"});
  }
  static void TearDownTestSuite() {
    EXPECT_FALSE(server_->child().ended()) << server_->output();  // no request of the test may end it
    delete server_;
    delete models_;
  }
  static void expect_alive() { EXPECT_EQ(server_->get_path("/health").status, 200); }

  static inline ModelFolders* models_ = nullptr;
  static inline Server* server_ = nullptr;
};

TEST_F(ServeLimits, refuses_invalid_requests) {
  const Server& server = *server_;
  EXPECT_EQ(server.send("nonsense\r\n\r\n").status, 400);
  EXPECT_EQ(server.send("GET / HTTP/9.9\r\n\r\n").status, 400);
  const std::string metrics = server.get_path("/metrics").body;
  EXPECT_NE(metrics.find("heed_requests_total{route=\"other\",status=\"400\"}"), std::string::npos) << metrics;
  EXPECT_EQ(server.send("GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 400);
  EXPECT_EQ(server.send(request_text("GET", "/nothing")).status, 404);
  const Answer method = server.send(request_text("POST", "/health"));
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.headers.at("allow"), "GET");
  EXPECT_EQ(server.send(request_text("POST", "/v1/completions", "{")).status, 400);
  EXPECT_EQ(server.send(request_text("POST", "/v1/completions", "[]")).status, 400);
  EXPECT_EQ(server.send(request_text("POST", "/v1/completions", "{\"model\": 3}")).status, 400);
  EXPECT_EQ(
      server.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}").status,
      415);
  EXPECT_EQ(server.post("/v1/completions", {{"model", "gpt2-lm"}, {"prompt", ""}}).status, 400);
  EXPECT_EQ(server.post("/v1/completions", {{"model", "gpt2-lm"}, {"prompt", {99999}}}).status, 400);
  EXPECT_EQ(server.post("/v1/completions", {{"model", "gpt2-lm"}, {"prompt", "w1"}, {"temperature", -1}}).status, 400);
  EXPECT_EQ(server.post("/v1/completions", {{"model", "gpt2-lm"}, {"prompt", "w1"}, {"n", 1000}}).status, 400);
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "[";
  EXPECT_EQ(server.send(request_text("POST", "/v1/completions", deep)).status, 400);
  const Answer unknown = server.post("/v1/completions", {{"model", "gpt2-ml"}, {"prompt", "w1"}});
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.json()["error"]["param"], "model");
  EXPECT_NE(unknown.error().find("gpt2-lm"), std::string::npos);
  expect_alive();
}

TEST_F(ServeLimits, refuses_other_sites_and_hosts) {
  EXPECT_EQ(server_->send("GET /health HTTP/1.1\r\nHost: example.org\r\n\r\n").status, 403);
  EXPECT_EQ(server_->send("GET /health HTTP/1.1\r\n\r\n").status, 403);
  EXPECT_EQ(server_->get_path("/health", "Origin: http://example.org\r\n").status, 403);
  EXPECT_EQ(server_->get_path("/health", "Origin: http://localhost\r\n").status, 200);
}

TEST_F(ServeLimits, limits_bodies_and_headers) {
  EXPECT_EQ(server_->send(request_text("POST", "/v1/completions", std::string(200000, ' '))).status, 413);
  EXPECT_EQ(server_->send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n").status, 413);
  EXPECT_EQ(server_->send(request_text("GET", "/health", "", "X: " + std::string(70000, 'x') + "\r\n")).status, 431);
  // Chunked bodies declare no length.
  Connection connection(server_->port());
  connection.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "8000\r\n" + std::string(0x8000, ' ') + "\r\n";
  for (int i = 0; i < 10 && connection.send(chunk); ++i) continue;
  EXPECT_EQ(connection.answer().status, 413);
  // The extensions and trailers of chunks declare none, either.
  for (const char* begin : {"5;", "0\r\nX: "}) {
    Connection endless(server_->port());
    endless.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(begin));
    endless.send(std::string(200000, 'x'));
    EXPECT_EQ(endless.answer().status, 431) << begin;
  }
  expect_alive();
}

TEST_F(ServeLimits, closes_idle_connections) {
  Connection idle(server_->port());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(idle.at_end());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GT(seconds, 1);
  EXPECT_LT(seconds, 15);
}

TEST_F(ServeLimits, slow_clients_do_not_delay_others) {
  std::vector<std::unique_ptr<Connection>> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(std::make_unique<Connection>(server_->port()));
    slow.back()->send("GET /health HT");
  }
  for (int round = 0; round < 5; ++round) {
    for (auto& each : slow) each->send("T");
    EXPECT_EQ(server_->get_path("/health").status, 200);
  }
}

TEST_F(ServeLimits, limits_connections) {
  std::vector<std::unique_ptr<Connection>> many;
  for (int i = 0; i < 40; ++i) {
    many.push_back(std::make_unique<Connection>(server_->port()));
    many.back()->send("GET");  // the rest may take longer than a connection may be idle
  }
  const Answer refused = server_->get_path("/health");
  EXPECT_EQ(refused.status, 503);
  many.clear();
  EXPECT_TRUE(within_a_minute([&] { return server_->get_path("/health").status == 200; }));
}

// Requests with random damage get an answer or a closed connection, and the server keeps running.
TEST_F(ServeLimits, survives_damaged_requests) {
  std::mt19937 random(1);
  const std::string whole =
      request_text("POST", "/v1/completions", Json{{"model", "gpt2-lm"}, {"prompt", "w1 w2"}, {"max_tokens", 2}}.dump());
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes) {
      const size_t at = random() % damaged.size();
      if (random() % 3 == 0)
        damaged.erase(at, random() % 8);
      else
        damaged[at] = static_cast<char>(random());
    }
    Connection connection(server_->port());
    connection.send(damaged);
    ::shutdown(connection.descriptor(), SHUT_WR);
    while (connection.receive()) continue;
  }
  expect_alive();
}

TEST_F(ServeLimits, stops_generating_for_clients_that_disconnected) {
  {
    Connection connection(server_->port());
    connection.send(request_text("POST", "/v1/completions",
                                 Json{{"model", "gpt2-lm"}, {"prompt", "w1"}, {"max_tokens", 60}, {"n", 16}, {"stream", true}}.dump()));
    EXPECT_NE(connection.until("data: "), "");
  }
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(within_a_minute([&] { return server_->metric("running_sequences") == 0; }));
}

TEST(ServeStart, requires_a_token_for_other_machines) {
  const ProgramResult open = run_heed("serve --host 0.0.0.0 --port 0 --runs ''");
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_NE(open.err.find("--token"), std::string::npos);
  EXPECT_EQ(run_heed("serve /nowhere --port 0").exit_code, 3);
  Server server({"--token", "secret", "--runs", "", "--quiet", "--allow-origin", "https://example.org"});
  EXPECT_EQ(server.get_path("/v1/models").status, 401);
  EXPECT_EQ(server.get_path("/v1/models", "Authorization: Bearer secreT\r\n").status, 401);
  EXPECT_EQ(server.get_path("/v1/models", "Authorization: Bearer secret\r\n").status, 200);
  EXPECT_EQ(server.get_path("/health").status, 200);
  const Answer other = server.get_path("/v1/models", "Origin: https://example.org\r\nAuthorization: Bearer secret\r\n");
  EXPECT_EQ(other.headers.at("access-control-allow-origin"), "https://example.org");
  const Answer preflight = server.send(request_text("OPTIONS", "/v1/models", "", "Origin: https://example.org\r\n"));
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.headers.at("access-control-allow-origin"), "https://example.org");
}

// An error before the first token has a status, even if the answer would be a stream.
TEST(ServeStart, errors_before_a_stream_have_a_status) {
  ModelFolders models;
  const std::string folder = models.add("gpt2-lm");
  Server server({folder, "--runs", "", "--quiet"});
  std::filesystem::resize_file(folder + "/model.safetensors", 1000);
  const Answer refused = server.post("/v1/completions", {{"model", "gpt2-lm"}, {"prompt", "w1"}, {"stream", true}});
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.error().find("cannot be loaded"), std::string::npos) << refused.body;
}

TEST(ServeStart, refuses_requests_when_the_queue_is_full) {
  ModelFolders models;
  Server server({models.add("gpt2-lm"), "--runs", "", "--quiet", "--queue", "1"});
  const std::vector<std::string> prompts(64, "w1");
  const Answer refused = server.post("/v1/completions", {{"model", "gpt2-lm"}, {"prompt", prompts}, {"max_tokens", 60}});
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_EQ(server.post("/v1/completions", {{"model", "gpt2-lm"}, {"prompt", "w1"}}).status, 200);
}

TEST(ServeStart, unloads_models_when_memory_is_short) {
  ModelFolders models;
  Server server({models.add("gpt2-lm"), models.add("bert-model"), "--memory", "1000", "--runs", "", "--quiet"});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(server.post("/v1/completions", {{"model", "gpt2-lm"}, {"prompt", "w1"}, {"max_tokens", 2}}).status, 200);
    EXPECT_EQ(server.post("/v1/embeddings", {{"model", "bert-model"}, {"input", "w1"}}).status, 200);
  }
  EXPECT_TRUE(within_a_minute([&] { return server.metric("model_drops_total") > 0; }));  // one may still be in use
}

}  // namespace
}  // namespace heed::test
