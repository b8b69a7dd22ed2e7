// The list of architectures. A new one is a file and a line in architectures.cc.
#pragma once

#include "heed/models/config.h"
#include "heed/models/model.h"

namespace heed {

struct Architecture {
  std::string name;   // as in config.json's "architectures"
  std::string base;   // name prefix of the inner model; absent in checkpoints of the inner model
  bool bare = false;  // this is the inner model: its parameter names have no prefix
  std::function<Network(const Scope& scope, const Config& config)> make = {};
  std::vector<std::string> ignored = {};  // name fragments of tensors in old checkpoints that are not used
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
