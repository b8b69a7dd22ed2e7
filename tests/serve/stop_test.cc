// How heed serve ends: running requests are finished, and after a kill the next server has the runs and models.
#include <gtest/gtest.h>

#include "tests/serve/client.h"
#include "tests/serve/models.h"

namespace heed::test {
namespace {

Json long_text(bool stream) {
  return {{"model", "gpt2-lm"}, {"prompt", "w1"}, {"max_tokens", 60}, {"n", 16}, {"seed", 1}, {"stream", stream}};
}

TEST(ServeStop, finishes_running_requests) {
  ModelFolders models;
  Server server({models.add("gpt2-lm"), "--runs", "", "--quiet"});
  Connection idle(server.port()), busy(server.port());
  busy.send(request_text("POST", "/api/lab/L7", "{\"stream\": true}"));
  EXPECT_EQ(busy.head().status, 200);  // both connections have been accepted
  server.child().send(SIGTERM);
  EXPECT_TRUE(idle.at_end());
  std::string last;
  for (std::string chunk = busy.next_chunk(); !chunk.empty(); chunk = busy.next_chunk()) last = chunk;
  EXPECT_TRUE(last.starts_with("event: result\n") || last.find("the experiment was stopped") != last.npos) << last;
  EXPECT_EQ(server.child().wait(), 0) << server.output();
}

TEST(ServeStop, a_second_signal_stops_immediately) {
  ModelFolders models;
  Server server({models.add("gpt2-lm"), "--runs", "", "--quiet"});
  Connection slow(server.port());
  slow.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_NE(slow.until("HTTP/1.1 100 Continue\r\n\r\n"), "");  // it waits for the body, which never arrives
  server.child().send(SIGINT);
  EXPECT_TRUE(within_a_minute([&] { return !Connection(server.port()).connected(); }));
  EXPECT_FALSE(server.child().ended());
  server.child().send(SIGINT);
  EXPECT_EQ(server.child().wait(), 130);
}

TEST(ServeStop, finishes_streams) {
  ModelFolders models;
  Server server({models.add("gpt2-lm"), "--runs", "", "--quiet"});
  const Json whole = server.post("/v1/completions", long_text(false)).json();
  Connection client(server.port());
  client.send(request_text("POST", "/v1/completions", long_text(true).dump()));
  EXPECT_EQ(client.head().status, 200);
  server.child().send(SIGTERM);
  std::vector<std::string> texts(16);
  std::string last;
  for (std::string chunk = client.next_chunk(); !chunk.empty(); chunk = client.next_chunk()) {
    last = chunk;
    if (!chunk.starts_with("data: {")) continue;
    const Json event = Json::parse(chunk.substr(6));
    for (const Json& choice : event["choices"]) texts[choice["index"].get<size_t>()] += choice["text"].get<std::string>();
  }
  EXPECT_EQ(last, "data: [DONE]\n\n");
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i], whole["choices"][i]["text"]) << i;
  EXPECT_EQ(server.child().wait(), 0) << server.output();
}

// Killed while it streams a text and a run that it started trains: the training continues, and the next server has the run and the models.
TEST(ServeStop, keeps_runs_and_models_after_a_kill) {
  ModelFolders models;
  const std::vector<std::string> arguments{models.add("gpt2-lm"), "--runs", (models.path() / "runs").string(), "--quiet"};
  auto server = std::make_unique<Server>(arguments);
  const Json settings{{"data", "shapes:200"}, {"epochs", 20000}, {"layers", 1}, {"width", 16}, {"heads", 2}};
  EXPECT_EQ(server->post("/api/runs", {{"task", "classify"}, {"settings", settings}, {"name", "one"}}).status, 201);
  Connection watch(server->port()), client(server->port());
  watch.send(request_text("GET", "/api/runs/classify/one/events?cursor=0-0-0"));
  for (int epoch = 0; epoch < 2; ++epoch) EXPECT_NE(watch.until("event: epoch\n"), "");
  const Json before = server->post("/v1/completions", long_text(false)).json();
  client.send(request_text("POST", "/v1/completions", long_text(true).dump()));
  EXPECT_NE(client.until("data: {"), "");
  server->child().send(SIGKILL);
  EXPECT_EQ(server->child().wait(), -SIGKILL);
  server = std::make_unique<Server>(arguments);
  EXPECT_EQ(server->post("/v1/completions", long_text(false)).json()["choices"], before["choices"]);
  const Json run = server->get_path("/api/runs/classify/one").json();
  EXPECT_EQ(run["summary"]["state"], "running") << run["summary"];
  EXPECT_GE(run["epochs"].size(), 2u);
  Connection again(server->port());
  again.send(request_text("GET", "/api/runs/classify/one/events?cursor=0-0-0"));
  EXPECT_NE(again.until("event: epoch\n"), "");
  EXPECT_EQ(server->post("/api/runs/classify/one/stop", Json::object()).status, 202);
  EXPECT_NE(again.until("\"state\":\"stopped\""), "");
}

}  // namespace
}  // namespace heed::test
