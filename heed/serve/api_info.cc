// The models in OpenAI's form, and everything about the server in heed's own.
#include "heed/core/isa.h"
#include "heed/core/parallel.h"
#include "heed/serve/app.h"
#include "heed/train/presets.h"

namespace heed::serve {
namespace {

Json model_json(const ModelInfo& info) { return {{"id", info.id}, {"object", "model"}, {"created", info.created}, {"owned_by", "heed"}}; }

void list_models(const Call& call) {
  Json data = Json::array();
  for (const ModelInfo& each : call.app.models().list()) data.push_back(model_json(each));
  call.reply({{"object", "list"}, {"data", std::move(data)}});
}

void give_model(const Call& call) { call.reply(model_json(call.app.models().host(call.path.at("model"))->info())); }

void give_info(const Call& call) {
  const ServeOptions& options = call.app.options();
  Json models = Json::array(), all_presets = Json::array();
  for (const ModelInfo& each : call.app.models().list()) models.push_back(to_json(each, call.app.models().is_loaded(each.id)));
  for (const Preset& each : presets()) all_presets.push_back({{"name", each.name}, {"summary", each.summary}, {"family", each.family}});
  const std::string runs = options.models.runs.string();
  call.reply({{"name", "heed"},
              {"version", options.version},
              {"device", name_of(default_device())},
              {"isa", instruction_set()},
              {"threads", thread_count()},
              {"runs", runs.empty() ? Json() : Json(runs)},
              {"can_train", options.train && !runs.empty()},
              {"models", std::move(models)},
              {"presets", std::move(all_presets)},
              {"limits", {{"max_body", options.http.max_body}, {"max_tokens", options.max_tokens}, {"max_seconds", options.max_seconds}}}});
}

}  // namespace

Endpoints info_endpoints() {
  return {{"GET", "/v1/models", Where::worker, list_models},
          {"GET", "/v1/models/{model}", Where::worker, give_model},
          {"GET", "/api/info", Where::worker, give_info}};
}

}  // namespace heed::serve
