#include "heed/serve/model_info.h"

#include <sys/stat.h>

#include "heed/io/paths.h"
#include "heed/models/cost.h"
#include "heed/models/inspect.h"
#include "heed/serve/chat_template.h"

namespace heed::serve {
namespace {

ModelTask task_of(const Model& model, InputKind kind) {
  const std::string& name = model.architecture();
  if (kind == InputKind::translation) return ModelTask::translate;
  if (model.generates()) return ModelTask::generate;
  if (name.ends_with("ForTokenClassification")) return ModelTask::tag;
  if (name.ends_with("ForMaskedLM") || name.ends_with("ForPreTraining")) return ModelTask::fill;
  return name.ends_with("Model") && kind == InputKind::text ? ModelTask::embed : ModelTask::classify;
}

// The first key that the config has.
int64_t number_in_config(const Json& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (config.contains(key) && config[key].is_number_integer()) return config[key].get<int64_t>();
  return 0;
}

int64_t modified_time(const Path& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 ? static_cast<int64_t>(about.st_mtime) : 0;
}

}  // namespace

std::string name_of(ModelTask task) {
  switch (task) {
    case ModelTask::generate: return "generate";
    case ModelTask::translate: return "translate";
    case ModelTask::classify: return "classify";
    case ModelTask::tag: return "tag";
    case ModelTask::fill: return "fill";
    case ModelTask::embed: return "embed";
  }
  return "";
}

ModelInfo describe_model(const std::string& id, const Path& folder) {
  ModelInfo out{.id = id, .folder = folder, .created = modified_time(folder / "config.json")};
  try {
    const Model model = load(folder, {.names = {.shapes_only = true}});
    const InputKind kind = input_kind(model);
    out.architecture = model.architecture();
    out.task = task_of(model, kind);
    out.image = kind == InputKind::image;
    out.embeddings = kind == InputKind::text;
    out.chat = out.task == ModelTask::generate && has_chat_template(folder);
    out.maps = has_maps(model);
    out.parameters = model.params().count();
    out.layers = number_in_config(model.config(), {"num_hidden_layers", "n_layer", "n_layers", "decoder_layers"});
    out.heads = number_in_config(model.config(), {"num_attention_heads", "n_head", "n_heads", "decoder_attention_heads"});
    out.max_tokens = out.image ? 0 : max_tokens(model);
    out.vocabulary = number_in_config(model.config(), {"vocab_size"});
    out.generation = model.generation().is_null() ? model.config() : model.generation();
  } catch (const Error& error) {
    out.error = error.what();
  }
  return out;
}

Json to_json(const ModelInfo& info, bool loaded) {
  Json out{{"id", info.id},
           {"folder", info.folder.string()},
           {"architecture", info.architecture},
           {"task", name_of(info.task)},
           {"input", info.image ? "image" : "text"},
           {"embeddings", info.embeddings},
           {"chat", info.chat},
           {"loaded", loaded},
           {"parameters", info.parameters},
           {"layers", info.layers},
           {"heads", info.heads},
           {"max_tokens", info.max_tokens},
           {"maps", info.maps}};
  if (!info.error.empty()) out["error"] = info.error;
  return out;
}

}  // namespace heed::serve
