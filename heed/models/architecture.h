// The architectures, each in a file of its own. A new one is a file and its line in architectures.cc.
#pragma once

#include "heed/models/config.h"
#include "heed/models/model.h"

namespace heed {

struct Architecture {
  std::string name;   // as in config.json's "architectures"
  std::string base;   // what names of the inner model begin with; checkpoints of that model alone lack it
  bool bare = false;  // this is the inner model: its own names lack it
  std::function<Network(const Scope& scope, const Config& config)> make = {};
  std::vector<std::string> ignored = {};  // ends of names that old checkpoints hold and nobody needs
};

const std::vector<Architecture>& architectures();
const Architecture& architecture_named(const std::string& source, const std::string& name);

using Architectures = std::vector<Architecture>;
Architectures bert_architectures();
Architectures distilbert_architectures();
Architectures gaussian_attention_architectures();
Architectures gpt2_architectures();
Architectures llama_architectures();
Architectures marian_architectures();
Architectures resnet_architectures();
Architectures vit_architectures();

}  // namespace heed
