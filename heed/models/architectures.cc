// The list of architectures.
#include "heed/models/architecture.h"

#include "heed/core/nearest.h"

namespace heed {

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = [] {
    Architectures list;
    for (const auto& family : {bert_architectures, distilbert_architectures, gaussian_attention_architectures, gpt2_architectures,
                               llama_architectures, marian_architectures, resnet_architectures, vit_architectures}) {
      const Architectures more = family();
      list.insert(list.end(), more.begin(), more.end());
    }
    return list;
  }();
  return all;
}

const Architecture& architecture_named(const std::string& source, const std::string& name) {
  std::vector<std::string> names;
  std::string known;
  for (const Architecture& each : architectures()) {
    if (each.name == name) return each;
    names.push_back(each.name);
    known += (known.empty() ? "" : ", ") + each.name;
  }
  const std::string hint = did_you_mean(name, names);
  fail<FileError>(source, ": the architecture ", in_quotes(name), " is not known", hint.empty() ? "." : hint, " Known: ", known);
}

}  // namespace heed
