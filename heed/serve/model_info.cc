#include "heed/serve/model_info.h"

#include <sys/stat.h>

#include "heed/io/paths.h"
#include "heed/models/architecture.h"
#include "heed/models/generate.h"
#include "heed/models/inspect.h"
#include "heed/serve/chat_template.h"

namespace heed::serve {
namespace {

ServedTask served_task(ModelTask task) {
  switch (task) {
    case ModelTask::causal_lm: return ServedTask::generate;
    case ModelTask::seq2seq_lm: return ServedTask::translate;
    case ModelTask::image_classification:
    case ModelTask::sequence_classification:
    case ModelTask::next_sentence: return ServedTask::classify;
    case ModelTask::token_classification: return ServedTask::tag;
    case ModelTask::masked_lm:
    case ModelTask::pretraining: return ServedTask::fill;
    case ModelTask::question_answering: return ServedTask::answer;
    case ModelTask::features:
    case ModelTask::image_text_matching:
    case ModelTask::image_captioning: break;
  }
  return ServedTask::embed;
}

// The value of the last key that the config has: of the decoder, if there is an encoder too.
int64_t number_in_config(const Json& config, const ConfigKeys::Names& keys) {
  for (auto key = keys.rbegin(); key != keys.rend(); ++key)
    if (config.contains(*key) && config[*key].is_number_integer()) return config[*key].get<int64_t>();
  return 0;
}

int64_t modified_time(const Path& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 ? static_cast<int64_t>(about.st_mtime) : 0;
}

}  // namespace

std::string name_of(ServedTask task) {
  switch (task) {
    case ServedTask::generate: return "generate";
    case ServedTask::translate: return "translate";
    case ServedTask::classify: return "classify";
    case ServedTask::tag: return "tag";
    case ServedTask::fill: return "fill";
    case ServedTask::answer: return "answer";
    case ServedTask::embed: return "embed";
  }
  return "";
}

ModelInfo describe_model(const std::string& id, const Path& folder) {
  ModelInfo out{.id = id, .folder = folder, .created = modified_time(folder / "config.json")};
  try {
    const Model model = load(folder, {.names = {.shapes_only = true}});
    const InputKind kind = input_kind(model);
    out.architecture = model.architecture();
    out.task = served_task(model.traits().task);
    out.image = kind == InputKind::image;
    out.embeddings = model.family().tokens && kind != InputKind::translation;
    if (out.embeddings) out.embed = embed_options(folder);
    out.chat = out.task == ServedTask::generate && has_chat_template(folder);
    out.maps = has_maps(model);
    out.parameters = model.params().count();
    out.layers = number_in_config(model.config(), model.family().keys.layers);
    out.heads = number_in_config(model.config(), model.family().keys.heads);
    out.max_tokens = model.family().tokens ? max_tokens(model) : 0;
    if (const Tensor words = word_table(model); words.defined()) out.vocabulary = words.size(0);
    out.generation = generation_settings(model);
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
