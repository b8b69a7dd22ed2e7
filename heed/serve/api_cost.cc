// /api/cost: parameters, arithmetic and memory of a served model, a preset or a config.
#include "heed/io/json_reader.h"
#include "heed/io/paths.h"
#include "heed/serve/app.h"
#include "heed/serve/setting_json.h"
#include "heed/train/cost_report.h"

namespace heed::serve {
namespace {

constexpr int64_t kMostMeasured = 200'000'000;  // parameters

void cost_request(const Call& call) {
  const Json json = call.body();
  const JsonReader body(json, "body");
  require(body.has("model") != body.has("config"), 400, "body: expected one of model and config");
  CostSettings of;
  std::string name = body.text_or("model", "config");
  Json config = body.has("config") ? body["config"].object() : Json();
  const bool preset =
      body.has("model") && std::any_of(presets().begin(), presets().end(), [&](const Preset& each) { return each.name == name; });
  if (preset) of.choice.preset = name;
  Settings settings("cost");
  declare(settings, of, preset);
  for (const std::string& each : assignments_in(body)) settings.assign(each);
  of.measure = of.measure || body.flag_or("measure", false);
  if (preset) config = model_config(of.choice);
  if (!preset && body.has("model")) {
    const ModelInfo info = call.app.models().host(name)->info();
    name = info.folder.string();
    config = read_json(info.folder / "config.json");
  }
  if (of.measure) {
    CostSettings predicted = of;
    predicted.measure = false;
    const int64_t parameters = cost_report(name, config, predicted).cost.total.count;
    require(parameters <= kMostMeasured, 422, "measure: the model has ", parameters, " parameters, expected at most ", kMostMeasured);
  }
  Json out = cost_json(cost_report(name, config, of));
  if (body.has("model")) out["model"] = body.text("model");
  call.reply(out);
}

}  // namespace

Endpoints cost_endpoints() { return {{"POST", "/api/cost", Where::worker, cost_request}}; }

}  // namespace heed::serve
