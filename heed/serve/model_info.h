// Properties and abilities of a served model, read without loading its weights.
#pragma once

#include <string>
#include <vector>

#include "heed/io/json.h"
#include "heed/models/embed.h"

namespace heed::serve {

enum class ServedTask { generate, translate, classify, tag, fill, answer, embed };
std::string name_of(ServedTask task);

struct ModelInfo {
  std::string id = {};
  Path folder = {};
  std::string architecture = {};
  ServedTask task = ServedTask::embed;
  bool image = false;       // takes images, else text
  bool embeddings = false;  // answers /v1/embeddings
  bool chat = false;        // has a chat template
  bool maps = false;        // its attention has maps
  int64_t parameters = 0, layers = 0, heads = 0, max_tokens = 0, vocabulary = 0;
  EmbedOptions embed = {};  // if it answers /v1/embeddings
  Json generation = {};     // generation_config.json, or config.json if there is none
  int64_t created = 0;      // seconds since 1970
  int64_t written = 0;      // changes when the model of a run does
  std::string error = {};   // why it cannot be used
};

ModelInfo describe_model(const std::string& id, const Path& folder);  // reads headers only
Json to_json(const ModelInfo& info, bool loaded);

}  // namespace heed::serve
