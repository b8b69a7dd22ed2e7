// Copies of fixture folders that a test may change.
#pragma once

#include <gtest/gtest.h>

#include "heed/models/model.h"
#include "heed/models/parity.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {

// A copy of a fixture that a test may change.
class FixtureCopy {
 public:
  explicit FixtureCopy(const std::string& name) {
    for (const auto& entry : std::filesystem::directory_iterator(fixture(name))) put(folder_ / entry.path().filename(), get(entry.path()));
  }
  const Path& path() const { return folder_.path(); }
  Path operator/(const std::string& name) const { return folder_ / name; }
  void set(const std::string& key, const Json& value) const {
    Json config = read_json(folder_ / "config.json");
    config[key] = value;
    write_json(folder_ / "config.json", config);
  }
  void add(const NamedTensors& more) const {
    const Safetensors file = Safetensors::open(folder_.path());
    NamedTensors tensors = more;
    for (const std::string& name : file.names()) tensors.emplace_back(name, file.tensor(name));
    write(tensors);
  }
  void remove(const std::string& fragment) const {
    const Safetensors file = Safetensors::open(folder_.path());
    NamedTensors tensors;
    for (const std::string& name : file.names())
      if (name.find(fragment) == std::string::npos) tensors.emplace_back(name, file.tensor(name));
    write(tensors);
  }
  void erase(const std::string& key) const {
    Json config = read_json(folder_ / "config.json");
    config.erase(key);
    write_json(folder_ / "config.json", config);
  }
  void rename(const std::function<std::string(const std::string&)>& change) const {
    NamedTensors tensors;
    const Safetensors file = Safetensors::open(folder_.path());
    for (const std::string& name : file.names()) tensors.emplace_back(change(name), file.tensor(name));
    write(tensors);
  }
  void refuses(const std::string& fragment, const ModelOptions& options = {}) const {
    expect_refused([&] { load(path(), options); }, fragment);
  }
  void refuses_value(const std::string& key, const Json& value, const std::string& fragment) const {
    const std::string before = get(folder_ / "config.json");
    set(key, value);
    refuses("config.json: " + fragment);
    put(folder_ / "config.json", before);
  }

 private:
  void write(const NamedTensors& tensors) const {
    write_safetensors(folder_ / "model.safetensors", tensors);
    std::filesystem::remove(folder_ / "model.safetensors.index.json");  // of fixtures with several files
  }
  Folder folder_;
};

inline void expect_parity(const Path& folder, double tolerance = 1e-5, const ModelOptions& options = {}) {
  for (const Difference& each : compare(load(folder, options), folder / "io.safetensors", tolerance))
    EXPECT_TRUE(each.within) << each.name << ": " << each.relative << " " << each.problem;
}

}  // namespace heed::test
