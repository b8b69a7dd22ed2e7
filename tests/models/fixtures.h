// The folders of tests/fixtures.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "heed/models/model.h"
#include "tests/io/files.h"

namespace heed::test {

// The sorted names of fixtures that contain such a file.
inline std::vector<std::string> fixtures_with(const char* file) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures))
    if (std::filesystem::exists(entry.path() / file)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

inline TensorMap inputs_in(const Safetensors& io) {
  TensorMap inputs;
  for (const std::string& name : io.names())
    if (name.starts_with("in.")) inputs[name.substr(3)] = io.tensor(name);
  return inputs;
}

}  // namespace heed::test
