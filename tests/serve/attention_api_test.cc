// heed serve: attention, inspection, costs, experiments, settings and runs.
#include <gtest/gtest.h>

#include "heed/io/image.h"
#include "heed/io/markup.h"
#include "heed/train/run_json.h"
#include "tests/cli/program.h"
#include "tests/serve/client.h"
#include "tests/serve/models.h"

namespace heed::test {
namespace {

class ServeAttention : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    models_ = new ModelFolders;
    server_ = new Server({models_->add("gpt2-lm"), models_->add("marian-translate"), models_->add("vit-classify"), "--runs",
                          (models_->path() / "runs").string(), "--quiet"});
  }
  static void TearDownTestSuite() {
    delete server_;
    delete models_;
  }
  static Json posted(const std::string& path, const Json& body, int status = 200) {
    const Answer answer = server_->post(path, body);
    EXPECT_EQ(answer.status, status) << path << ": " << answer.body;
    return answer.json();
  }
  static inline ModelFolders* models_ = nullptr;
  static inline Server* server_ = nullptr;
};

double number_at(const Json& json, const std::string& path) { return json[Json::json_pointer(path)].get<double>(); }

TEST_F(ServeAttention, computes_terms_with_gradients) {
  // Position-only attention of a Gaussian with its centre one column to the left.
  Json request{{"grid", {3, 4}},
               {"beta", 0},
               {"terms", {{{"name", "gaussian"}, {"parameters", {{"alpha", {2.0}}, {"center", {{0, 1}}}}}}}},
               {"target", {{"head", 0}, {"query", 5}, {"key", 5}}}};
  const Json at = posted("/api/attend", request);
  double sum = 0;
  for (const Json& each : at["probabilities"][0][5]) sum += each.get<double>();
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_NEAR(number_at(at, "/gradients/loss"), number_at(at, "/probabilities/0/5/5"), 1e-6);
  // The gradient of alpha is a difference of the weights.
  const double step = 1e-2;
  request["terms"][0]["parameters"]["alpha"] = {2.0 + step};
  const double above = number_at(posted("/api/attend", request), "/probabilities/0/5/5");
  request["terms"][0]["parameters"]["alpha"] = {2.0 - step};
  const double below = number_at(posted("/api/attend", request), "/probabilities/0/5/5");
  EXPECT_NEAR(number_at(at, "/gradients/terms/0/alpha/0"), (above - below) / (2 * step), 1e-3);
  // That of the scores is p (1 - p) at the weight itself.
  const double p = number_at(at, "/probabilities/0/5/5");
  EXPECT_NEAR(number_at(at, "/gradients/scores/0/5/5"), p * (1 - p), 1e-5);
}

TEST_F(ServeAttention, accepts_every_listed_term) {
  const Json list = server_->get_path("/api/terms?grid=4x4").json();
  int used = 0;
  for (const Json& term : list["terms"]) {
    if (!term["in_attend"].get<bool>()) continue;
    ++used;
    const Json out = posted(
        "/api/attend", {{"grid", {4, 4}}, {"heads", 2}, {"terms", {{{"name", term["name"]}}}}, {"include", {"output", "scores", "q"}}});
    EXPECT_EQ(out["probabilities"].size(), 2u) << term["name"];
    EXPECT_EQ(out["output"][1].size(), 16u) << term["name"];
  }
  EXPECT_GE(used, 10);
  EXPECT_NE(server_->post("/api/attend", {{"terms", {{{"name", "gausian"}}}}}).error().find("gaussian"), std::string::npos);
  EXPECT_EQ(server_->post("/api/attend", {{"tokens", 100000}}).status, 400);
  EXPECT_EQ(server_->post("/api/attend", {{"q", {1, 2}}}).status, 400);
  EXPECT_EQ(server_->post("/api/attend", {{"tokens", 4}, {"terms", {{{"name", "gaussian"}}}}}).status, 400);
}

TEST_F(ServeAttention, inspects_and_changes_attention) {
  Json request{{"model", "gpt2-lm"}, {"text", "w5 w6 w7 w8"}, {"layers", {1}}, {"queries", {3}}, {"shapes", true}};
  const Json plain = posted("/api/inspect", request);
  EXPECT_EQ(plain["tokens"].size(), 4u);
  EXPECT_EQ(plain["maps"][0]["weights"][0][0].size(), 1u);
  EXPECT_EQ(plain["maps"][0]["weights"][0][0][0].size(), 4u);
  EXPECT_FALSE(plain.contains("before"));
  const auto map = std::find_if(plain["shapes"].begin(), plain["shapes"].end(),
                                [](const Json& each) { return each["name"] == "transformer.h.1.attn.map"; });
  ASSERT_NE(map, plain["shapes"].end());
  EXPECT_EQ((*map)["shape"], (Json{1, 3, 4, 4}));
  request["off"] = {{{"layer", 0}, {"head", 0}}};
  const Json off = posted("/api/inspect", request);
  EXPECT_EQ(off["before"], plain["predictions"]);
  EXPECT_NE(off["predictions"], plain["predictions"]);
  request.erase("off");
  request["hidden"] = {1};
  const Json hidden = posted("/api/inspect", request);
  EXPECT_EQ(number_at(hidden, "/maps/0/weights/0/0/0/1"), 0);
  request.erase("hidden");
  request["beta"] = 0;
  const Json flat = posted("/api/inspect", request);
  for (const Json& each : flat["maps"][0]["weights"][0][0][0]) EXPECT_NEAR(each.get<double>(), 0.25, 1e-5);
  request = {{"model", "gpt2-lm"}, {"text", "w5 w6 w7"}, {"every_token", true}, {"maps", false}, {"top", 2}};
  EXPECT_EQ(posted("/api/inspect", request)["predictions"].size(), 3u);
  EXPECT_EQ(server_->post("/api/inspect", {{"model", "gpt2-lm"}, {"text", "w5"}, {"layers", {99}}}).status, 400);
}

TEST_F(ServeAttention, shows_the_terms_of_scores) {
  const Json found =
      posted("/api/inspect", {{"model", "gpt2-lm"}, {"text", "w5 w6 w7 w8"}, {"layers", {1}}, {"queries", {3}}, {"terms", true}});
  EXPECT_EQ(found["terms"][0]["rows"], (Json{3}));
  EXPECT_EQ(found["terms"][0]["heads"].size(), found["maps"][0]["heads"].size());
  const Json& head = found["terms"][0]["heads"][1];
  EXPECT_EQ(head["weights"][0], found["maps"][0]["weights"][0][1][0]);
  for (size_t key = 0; key < 4; ++key) {
    double sum = 0;
    for (const Json& term : head["terms"]) sum += term[0][key].get<double>();
    EXPECT_NEAR(sum, head["scores"][0][key].get<double>(), 1e-5);
  }
  const Json translation =
      posted("/api/inspect", {{"model", "marian-translate"}, {"text", "w5 w6 w7"}, {"target", "w8 w9"}, {"maps", false}, {"terms", true}});
  ASSERT_EQ(translation["terms"].size(), 3u);
  EXPECT_EQ(translation["terms"][1]["kind"], "encoder");
  EXPECT_EQ(translation["terms"][1]["rows"].size(), translation["terms"][1]["queries"].size());
}

TEST_F(ServeAttention, inspects_images_and_translations) {
  const std::string png = png_bytes({.width = 32, .height = 32, .pixels = std::vector<uint8_t>(32 * 32 * 3, 99)});
  const Json image = posted("/api/inspect", {{"model", "vit-classify"},
                                             {"image", base64(std::as_bytes(std::span(png)))},
                                             {"layers", {0}},
                                             {"off", {{{"layer", 0}, {"head", 0}}}}});
  EXPECT_EQ(image["image"]["width"], 32);
  EXPECT_EQ(image["maps"][0]["queries"].size(), image["maps"][0]["keys"].size());
  const Json translation =
      posted("/api/inspect", {{"model", "marian-translate"}, {"text", "w5 w6 w7"}, {"target", "w8 w9"}, {"hidden", {0}}});
  EXPECT_EQ(translation["kind"], "translation");
  EXPECT_EQ(translation["maps"][0]["kind"], "cross");
  EXPECT_EQ(number_at(translation, "/maps/0/weights/0/0/0/0"), 0);  // hidden from the decoder
}

TEST_F(ServeAttention, computes_costs) {
  const Json own = posted("/api/cost", {{"model", "vit-tiny"}, {"settings", {{"batch", 8}}}});
  const Json program = Json::parse(output_of_heed("cost vit-tiny batch=8 --json"));
  EXPECT_EQ(own, program);
  EXPECT_EQ(posted("/api/cost", {{"model", "gpt2-lm"}})["model"], "gpt2-lm");
  EXPECT_EQ(server_->post("/api/cost", {{"model", "vit-tiny"}, {"settings", {{"bach", 8}}}}).status, 400);
  EXPECT_EQ(server_->post("/api/cost", {{"model", "nothing"}}).status, 404);
  EXPECT_EQ(server_->post("/api/cost", {{"config", {{"architectures", {"Nothing"}}}}}).status, 400);
}

TEST_F(ServeAttention, runs_experiments) {
  const Json list = server_->get_path("/api/lab").json();
  EXPECT_GE(list["experiments"].size(), 30u);
  const Json result = posted("/api/lab/L7", {{"settings", {{"samples", 2000}}}, {"svg", true}});
  EXPECT_EQ(result["name"], "dot-product-variance");
  EXPECT_EQ(result["settings"]["samples"], 2000);
  EXPECT_EQ(result["figures"][0]["frames"][0]["plots"][0]["kind"].is_string(), true);
  EXPECT_NE(result["figures"][0]["frames"][0]["svg"].get<std::string>().find("<svg"), std::string::npos);
  EXPECT_EQ(server_->post("/api/lab/L999", Json::object()).status, 404);
  EXPECT_EQ(server_->post("/api/lab/L7", {{"settings", {{"sample", 1}}}}).status, 400);
}

TEST_F(ServeAttention, lists_settings) {
  const Json found = server_->get_path("/api/settings?task=language").json();
  EXPECT_EQ(found["task"], "language");
  bool epochs = false;
  for (const Json& each : found["settings"])
    epochs = epochs || (each["key"] == "epochs" && each["type"] == "integer" && each["least"].is_number());
  EXPECT_TRUE(epochs);
  EXPECT_EQ(server_->get_path("/api/settings?task=nothing").status, 404);
}

TEST_F(ServeAttention, starts_watches_stops_and_resumes_runs) {
  const Json settings{{"data", "shapes:200"},
                      {"epochs", 20000},  // it is stopped long before
                      {"layers", 1},
                      {"width", 16},
                      {"heads", 2}};
  const Json started = posted("/api/runs", {{"task", "classify"}, {"settings", settings}, {"name", "one"}}, 201);
  EXPECT_EQ(started["id"], "classify/one");
  Connection watch(server_->port());
  watch.send(request_text("GET", "/api/runs/classify/one/events?cursor=0-0-0"));
  EXPECT_EQ(watch.head().headers["content-type"], "text/event-stream");
  for (int epoch = 0; epoch < 2; ++epoch) EXPECT_NE(watch.until("event: epoch\n"), "");
  // An inherited descriptor would keep the server's port and connections open.
  const std::optional<int> process = process_of_run(models_->path() / "runs/classify/one");
  ASSERT_TRUE(process.has_value());
  for (const auto& file : std::filesystem::directory_iterator("/proc/" + std::to_string(*process) + "/fd")) {
    std::error_code closed;
    const std::string target = std::filesystem::read_symlink(file.path(), closed).string();
    EXPECT_FALSE(target.starts_with("socket:")) << file.path() << ": " << target;
  }
  EXPECT_EQ(posted("/api/runs/classify/one/stop", Json::object(), 202)["id"], "classify/one");
  EXPECT_NE(watch.until("\"state\":\"stopped\""), "");
  const Json run = server_->get_path("/api/runs/classify/one").json();
  EXPECT_EQ(run["summary"]["state"], "stopped");
  EXPECT_FALSE(run["epochs"].empty());
  EXPECT_FALSE(run["settings"].empty());
  EXPECT_EQ(server_->post("/api/runs/classify/one/stop", Json::object()).status, 409);
  EXPECT_EQ(server_->post("/api/runs", {{"task", "classify"}, {"settings", settings}, {"name", "one"}}).status, 409);
  posted("/api/runs/classify/one/resume", Json::object(), 202);
  EXPECT_NE(watch.until("\"state\":\"running\""), "");
  posted("/api/runs/classify/one/stop", Json::object(), 202);
  EXPECT_NE(watch.until("\"state\":\"stopped\""), "");
  EXPECT_EQ(server_->get_path("/api/runs").json()["runs"].size(), 1u);
  const Answer wrong = server_->post("/api/runs", {{"task", "classify"}, {"settings", {{"data", "/nowhere"}}}});
  EXPECT_EQ(wrong.status, 400);
  EXPECT_NE(wrong.error().find("nowhere"), std::string::npos) << wrong.error();
  put(models_->path() / "runs/classify/one/config.toml", "epochs = ");
  EXPECT_EQ(server_->post("/api/runs/classify/one/resume", Json::object()).status, 400);
  for (const char* bad : {"/api/runs/classify/..", "/api/runs/../runs", "/api/runs/classify/%2e%2e", "/api/runs/a%2Fb/c"})
    EXPECT_EQ(server_->get_path(bad).status, 404) << bad;
  // The best model of the run is served.
  bool served = false;
  const Json models = server_->get_path("/v1/models").json();
  for (const Json& each : models["data"]) served = served || each["id"] == "classify/one";
  EXPECT_TRUE(served);
}

}  // namespace
}  // namespace heed::test
