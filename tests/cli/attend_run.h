// Shared by the tests of `heed attend`: writes input files and runs the program on them.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <map>
#include <string>

#include "heed/io/safetensors.h"
#include "heed/ops/ops.h"
#include "tests/io/files.h"
#include "tests/ops/cases.h"

namespace heed::test {

using TensorMap = std::map<std::string, Tensor>;

struct Attended {
  int exit_code;
  std::string out, err;
  TensorMap tensors;  // of the output file, if there is one
};

// Writes the tensors and runs the program on them. IN, OUT and OPTIONS in the arguments are replaced.
inline Attended run_attend(const TensorMap& tensors, const std::string& options, std::string arguments = "attend IN OPTIONS -o OUT") {
  const Folder folder;
  const auto substitute = [&](const std::string& word, const std::string& value) {
    for (size_t at = arguments.find(word); at != std::string::npos; at = arguments.find(word, at + value.size()))
      arguments.replace(at, word.size(), value);
  };
  substitute("OPTIONS", options);
  substitute("IN", folder / "in.safetensors");
  substitute("OUT", folder / "out.safetensors");
  write_safetensors(folder / "in.safetensors", NamedTensors(tensors.begin(), tensors.end()));
  const std::string before = get(folder / "in.safetensors"), command = "HEED_THREADS=1 '" HEED_PROGRAM "' " + arguments;
  const int status = std::system((command + " >'" + (folder / "stdout").string() + "' 2>'" + (folder / "stderr").string() + "'").c_str());
  Attended result{WIFEXITED(status) ? WEXITSTATUS(status) : -1, get(folder / "stdout"), get(folder / "stderr"), {}};
  EXPECT_EQ(get(folder / "in.safetensors"), before);
  if (std::filesystem::exists(folder / "out.safetensors")) {
    const Safetensors file = Safetensors::open(folder / "out.safetensors");
    for (const std::string& name : file.names()) {
      const Tensor x = file.tensor(name);
      result.tensors[name] = Tensor::from(x.to_vector<float>(), x.shape(), kCpu);
      EXPECT_EQ(x.dtype(), DType::f32) << name;
    }
  }
  const std::string path = folder.path();  // remove the temporary folder from messages
  for (size_t at = result.err.find(path); at != std::string::npos; at = result.err.find(path)) result.err.erase(at, path.size() + 1);
  return result;
}

// A 3 x 4 grid of tokens; two query heads per key head.
inline TensorMap small_inputs() {
  return {{"q", normal_input({2, 4, 12, 5}, 1)}, {"k", normal_input({2, 2, 12, 5}, 2)}, {"v", normal_input({2, 2, 12, 3}, 3)}};
}

inline Tensor random_mask(const Shape& shape, DType dtype, uint64_t seed) {
  std::vector<uint8_t> keep;
  for (const float x : normal_input(shape, seed).to_vector<float>()) keep.push_back(x > -0.5f);
  return converted(Tensor::from(keep, shape, kCpu), dtype);
}

}  // namespace heed::test
