// A copy of a fixture with a small tokenizer added: the folder of a text model.
#pragma once

#include "tests/io/files.h"
#include "tests/text/vocabularies.h"

namespace heed::test {

struct TextFolder : Folder {
  explicit TextFolder(const std::string& name) {
    std::filesystem::copy(fixture(name), path());
    put(path() / "tokenizer.json", bert_json().dump());
  }
  // Sets a key of config.json; null removes it.
  void change(const std::string& key, const Json& value) const {
    Json config = read_json(path() / "config.json");
    config[key] = value;
    if (value.is_null()) config.erase(key);
    put(path() / "config.json", config.dump());
  }
};

}  // namespace heed::test
