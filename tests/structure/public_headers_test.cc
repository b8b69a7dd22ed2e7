// The installed headers (cmake/public_headers.cmake) are complete: all their includes are installed, and their declarations are exported.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/structure/source.h"

namespace heed::test {
namespace {

// Paths from the root of the tree.
std::set<std::string> installed_headers() {
  const std::string list = read_source("cmake/public_headers.cmake");
  static const std::regex entry("set\\(heed_(?:internal_)?headers_of_(\\w+)([^)]*)\\)");
  std::set<std::string> out;
  for (std::sregex_iterator each(list.begin(), list.end(), entry), last; each != last; ++each) {
    std::istringstream names((*each)[2]);
    for (std::string name; names >> name;) {
      const std::string path = "heed/" + (*each)[1].str() + "/" + name;
      if (!path.ends_with("/*.h")) {
        out.insert(path);
        continue;
      }
      const std::string folder = path.substr(0, path.size() - 4);
      for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(HEED_SOURCE_DIR) / folder))
        out.insert(folder + "/" + file.path().filename().string());
    }
  }
  return out;
}

TEST(PublicHeaders, include_installed_headers_only) {
  const std::set<std::string> installed = installed_headers();
  EXPECT_GT(installed.size(), 100u);
  static const std::regex include("#include \"(heed/[^\"]+)\"");
  for (const std::string& path : installed) {
    const std::string text = read_source(path);
    for (std::sregex_iterator each(text.begin(), text.end(), include), last; each != last; ++each)
      EXPECT_TRUE(installed.contains((*each)[1])) << path << " includes " << (*each)[1] << ", which cmake/public_headers.cmake lacks";
  }
}

TEST(PublicHeaders, are_exported) {
  for (const std::string& path : installed_headers()) {
    const std::string text = read_source(path);
    const bool declares = text.find("\nnamespace ") != std::string::npos;
    EXPECT_TRUE(!declares || text.find("\nnamespace HEED_API heed {\n") != std::string::npos)
        << path << ": expected namespace HEED_API heed {";
  }
}

TEST(Examples, are_short_and_explain_how_to_run_them) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(HEED_SOURCE_DIR) / "examples")) {
    if (file.path().extension() != ".cc") continue;
    const std::string name = file.path().stem(), text = read_source("examples/" + name + ".cc");
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 80) << name;
    EXPECT_TRUE(std::regex_search(text, std::regex("^// [^#]*\n//   " + name + "[^#]*docs/\\w+\\.md")))
        << name << ": expected how it is run and a page of docs/";
    ++count;
  }
  EXPECT_GE(count, 5);
}

}  // namespace
}  // namespace heed::test
