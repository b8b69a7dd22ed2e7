// Small models for tests of the server: fixtures with a tokenizer of words "w0", "w1", ...
#pragma once

#include "heed/io/json.h"
#include "tests/io/files.h"

namespace heed::test {

// Token i is the word "wi"; the last one is [MASK].
inline Json tokenizer_of_words(int64_t count) {
  Json vocabulary = Json::object();
  for (int64_t i = 0; i + 1 < count; ++i) vocabulary["w" + std::to_string(i)] = i;
  vocabulary["[MASK]"] = count - 1;
  return {{"added_tokens", {{{"id", count - 1}, {"content", "[MASK]"}, {"special", true}}}},
          {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
          {"model", {{"type", "WordLevel"}, {"unk_token", "w2"}, {"vocab", vocabulary}}}};
}

class ModelFolders {
 public:
  // A copy of a fixture, with such a tokenizer if it reads text.
  std::string add(const std::string& name) {
    const Path to = folder_ / name;
    std::filesystem::create_directories(to);
    for (const auto& file : std::filesystem::directory_iterator(fixture(name)))
      if (file.path().filename() != "io.safetensors" && file.path().filename() != "beams.safetensors")
        std::filesystem::copy_file(file.path(), to / file.path().filename(), std::filesystem::copy_options::overwrite_existing);
    const Json config = read_json(to / "config.json");
    if (config.contains("vocab_size")) put(to / "tokenizer.json", tokenizer_of_words(config["vocab_size"].get<int64_t>()).dump());
    return to.string();
  }
  const Path& path() const { return folder_.path(); }

 private:
  Folder folder_;
};

}  // namespace heed::test
