// Source files, for tests that compare documents with code.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace heed::test {

inline std::string read_source(const std::string& path) {
  std::ifstream in(std::filesystem::path(HEED_SOURCE_DIR) / path);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// The example of a source file as shown in a page: the lines between "// example begins" and "// example ends".
inline std::string shown_example(const std::string& path) {
  const std::string code = read_source(path), begin = "// example begins\n";
  const size_t from = code.find(begin) + begin.size(), to = code.find("// example ends");
  EXPECT_NE(to, std::string::npos) << path;
  return "```cpp\n" + code.substr(from, to - from) + "```";
}

}  // namespace heed::test
