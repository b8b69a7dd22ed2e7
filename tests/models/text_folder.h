// A fixture with a small tokenizer beside it, as the folder of a text model is.
#pragma once

#include "tests/io/files.h"
#include "tests/text/vocabularies.h"

namespace heed::test {

struct TextFolder : Folder {
  explicit TextFolder(const std::string& name) {
    std::filesystem::copy(fixture(name), path());
    put(path() / "tokenizer.json", bert_json().dump());
  }
  // Puts another value into config.json; null takes the key away.
  void change(const std::string& key, const Json& value) const {
    Json config = read_json(path() / "config.json");
    config[key] = value;
    if (value.is_null()) config.erase(key);
    put(path() / "config.json", config.dump());
  }
};

}  // namespace heed::test
