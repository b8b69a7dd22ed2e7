// Whatever sizes and numbers config.json contains, a model is rejected or built without allocating excessive memory: every key of
// every fixture in turn, with and without the checkpoint.
#include <time.h>

#include "heed/core/memory.h"
#include "heed/models/cost.h"
#include "heed/models/cost_run.h"
#include "heed/models/parity.h"
#include "tests/models/fixtures.h"

namespace heed::test {
namespace {

constexpr int64_t kMemory = int64_t{64} << 20;
constexpr double kSeconds = 2;  // of processor time; a size that is believed takes minutes

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Runs it; only a FileError is allowed.
void expect_cheap(const std::string& what, const std::function<void()>& act) {
  release_cached_memory(kCpu);
  const bool counted = reset_high_water() && !kSanitized;
  const int64_t before = process_bytes("VmRSS");
  const double start = processor_seconds();
  try {
    act();
  } catch (const FileError&) {
  } catch (const Error& error) {
    ADD_FAILURE() << what << ": expected an error about the file, found: " << error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": expected an error of heed, found: " << error.what();
  }
  if (kSanitized) return;
  EXPECT_LT(processor_seconds() - start, kSeconds) << what;
  if (counted) {
    EXPECT_LT(process_bytes("VmHWM") - before, kMemory) << what;
  }
}

std::vector<Json> hostile_values(const Json& value) {
  if (value.is_number_integer()) return {16777216, 1'000'000'000, 65536, 1, 0, -1, 1.5, "7"};
  if (value.is_number()) return {1e30, -1, 1e-30, "nan", 1e300};
  if (value.is_array() && !value.empty() && value[0].is_number())
    return {Json::array({16777216}), Json(std::vector<int>(value.size(), 16777216)), Json(std::vector<int>(100'000, 2)), Json::array()};
  return {};
}

// Every key with every value; inner objects such as rope_scaling too.
void each_change(const Json& config, const std::function<void(const std::string& what, const Json& changed)>& use) {
  for (const auto& [key, value] : config.items()) {
    for (const Json& other : hostile_values(value)) {
      Json changed = config;
      changed[key] = other;
      use(key + " = " + other.dump().substr(0, 40), changed);
    }
    if (!value.is_object() || key == "id2label" || key == "label2id") continue;
    for (const auto& [inner, number] : value.items())
      for (const Json& other : hostile_values(number)) {
        Json changed = config;
        changed[key][inner] = other;
        use(key + "." + inner + " = " + other.dump(), changed);
      }
  }
}

const std::vector<std::string> kEveryFamily{"bert-sentiment", "bert-masked",       "distilbert-sentiment", "vit-classify",  "deit-teacher",
                                            "gpt2-lm",        "llama-three",       "llama-biased",         "marian-shared", "marian-untied",
                                            "resnet-basic",   "resnet-bottleneck", "dinov2-registers"};

TEST(HostileConfigs, are_compared_with_the_checkpoint_before_anything_is_built) {
  for (const std::string& name : kEveryFamily)
    each_change(read_json(fixture(name) / "config.json"), [&](const std::string& what, const Json& config) {
      for (const Weights weights : {Weights::trainable, Weights::int8})
        expect_cheap(name + ": " + what, [&] { load(fixture(name), {.weights = weights, .config = config}); });
    });
}

TEST(HostileConfigs, cost_is_computed_without_taking_memory) {
  for (const std::string& name : kEveryFamily)
    each_change(read_json(fixture(name) / "config.json"), [&](const std::string& what, const Json& config) {
      expect_cheap(name + ": " + what, [&] { cost_of(make_model(config, {.names = {.shapes_only = true}})); });
    });
}

// Sizes that no tensor of the checkpoint has: positions that are computed.
TEST(HostileConfigs, computed_positions_are_computed_when_they_are_used) {
  for (const char* name : {"llama-grouped", "marian-shared"}) {
    Json config = read_json(fixture(name) / "config.json");
    config["max_position_embeddings"] = 16777216;
    expect_cheap(name, [&] {
      for (const Difference& each : compare(load(fixture(name), {.config = config}), fixture(name) / "io.safetensors", 1e-4))
        EXPECT_TRUE(each.within) << name << ": " << each.name;
    });
    expect_cheap(std::string(name) + ", a dry run", [&] {
      const Model outline = make_model(config, {.names = {.shapes_only = true}});
      predicted_memory(outline, resolve_input_size(outline, {}), Purpose::inference);
    });
  }
}

// The "heed" keys for positions, attention and patterns, on images and texts of any size.
TEST(HostileConfigs, own_keys_cost_nothing) {
  const std::vector<Json> own{{{"positions", "sinusoidal"}},
                              {{"positions", "rotary"}},
                              {{"positions", "alibi"}},
                              {{"positions", "relative"}, {"reach", 16777216}},
                              {{"positions", "sinusoidal_2d"}, {"pooling", "gap"}},
                              {{"positions", "relative_2d"}, {"pooling", "flatten"}},
                              {{"attention", "linear"}, {"features", "random"}},
                              {{"attention", "pooled"}, {"reduction", 16777216}, {"pooling", "gap"}},
                              {{"soft_cap", 1e300}},
                              {{"pattern", {{"kind", "window"}, {"before", 16777216}}}},
                              {{"pattern", {{"kind", "chunks"}, {"size", 16777216}}}},
                              {{"pattern", {{"kind", "grid_window"}, {"rows", 16777216}}}, {"pooling", "gap"}}};
  for (const Json& keys : own)
    for (const char* name : {"vit-classify", "bert-sentiment", "gpt2-lm"}) {
      Json config = read_json(fixture(name) / "config.json");
      config["heed"] = keys;
      for (const char* key : {"image_size", "max_position_embeddings", "n_positions"})
        if (config.contains(key)) config[key] = key == std::string("image_size") ? 65536 : 16777216;
      expect_cheap(std::string(name) + ": " + keys.dump(), [&] { cost_of(make_model(config, {.names = {.shapes_only = true}})); });
      expect_cheap(std::string(name) + ", loaded: " + keys.dump(), [&] { load(fixture(name), {.config = config}); });
    }
}

// The size of parameters that may be missing and are initialized is limited.
TEST(HostileConfigs, missing_parameters_have_a_bound) {
  Json config = read_json(fixture("bert-sentiment") / "config.json");
  config["num_labels"] = 16777216;
  config.erase("id2label");
  expect_cheap("num_labels", [&] { load(fixture("bert-sentiment"), {.names = {.allow_missing = {"classifier."}}, .config = config}); });
}

TEST(HostileConfigs, numbers_are_bounded_and_values_are_quoted_once) {
  const auto refused = [](const char* name, const std::string& key, const Json& value, const std::string& message) {
    Json config = read_json(fixture(name) / "config.json");
    config[key] = value;
    expect_refused([&] { load(fixture(name), {.config = config}); }, message);
  };
  refused("bert-sentiment", "layer_norm_eps", -1e-5, "config.json: layer_norm_eps is \"-1e-05\", expected a number from 0 to 1");
  refused("gpt2-lm", "layer_norm_epsilon", 1e30, "layer_norm_epsilon is \"1e+30\", expected a number from 0 to 1");
  refused("llama-three", "rope_theta", 0, "rope_theta is \"0\", expected a number from 1 to 1e+12");
  refused("llama-three", "rope_scaling", {{"rope_type", "yarm"}},
          "rope_scaling.rope_type is \"yarm\", expected default, linear, dynamic, yarn, longrope or llama3");
  refused("vit-classify", "hidden_size", "many", "hidden_size is \"many\", expected a whole number");
  refused("vit-classify", "num_hidden_layers", 1'000'000'000, "num_hidden_layers is \"1000000000\", expected a whole number of 0 or more");
  refused("vit-classify", "patch_size", 64, "patch_size is \"64\", expected at most image_size");
  refused("resnet-basic", "depths", {1, 1'000'000, 1}, "depths is");
}

}  // namespace
}  // namespace heed::test
