// Code shown in the documents must match the tree.
#include <gtest/gtest.h>

#include <cctype>
#include <sstream>
#include <string>

#include "tests/structure/source.h"

namespace heed::test {
namespace {

TEST(Documents, the_readme_shows_the_tested_program) {
  EXPECT_NE(read_source("README.md").find("```cpp\n" + read_source("tests/structure/outside/core.cc") + "```"), std::string::npos);
}

TEST(Documents, the_new_op_example_matches_the_sources) {
  const std::string guide = read_source("docs/architecture.md"), code = read_source("heed/ops/elementwise.h");
  const size_t begin = guide.find("```diff\n"), end = guide.find("\n```", begin);
  ASSERT_NE(end, std::string::npos);
  std::istringstream diff(guide.substr(begin + 8, end - begin - 8));
  int added = 0;
  for (std::string line; std::getline(diff, line);) {
    if (!line.starts_with('+') || line.starts_with("+++")) continue;
    ++added;
    EXPECT_NE(code.find(line.substr(1)), std::string::npos) << line;
  }
  EXPECT_GE(added, 4);
}

// Without whitespace: the formatter may break lines.
std::string without_spaces(std::string text) {
  std::erase_if(text, [](char c) { return std::isspace(static_cast<unsigned char>(c)); });
  return text;
}

TEST(Documents, the_lines_about_attention_are_tested) {
  const std::string page = read_source("docs/attention.md"), code = without_spaces(read_source("tests/attention/examples_test.cc"));
  int lines = 0;
  for (size_t end = page.find("` |\n"); end != std::string::npos; end = page.find("` |\n", end + 1)) {
    const size_t begin = page.rfind('`', end - 1) + 1;
    const std::string line = page.substr(begin, end - begin);
    EXPECT_NE(code.find(without_spaces(line) + ","), std::string::npos) << line;
    ++lines;
  }
  EXPECT_GE(lines, 25);
}

}  // namespace
}  // namespace heed::test
