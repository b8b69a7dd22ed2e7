// The page of heed serve is built by npm and committed: web/dist/index.html.gz. This fails when its sources have changed since.
#include <zlib.h>

#include <algorithm>
#include <cstdio>

#include "tests/io/files.h"

namespace heed::test {
namespace {

const Path kWeb = Path(HEED_SOURCE_DIR) / "web";
constexpr size_t kMostPageBytes = 250'000;  // compressed

std::string unpacked_page() {
  const std::string file = (kWeb / "dist/index.html.gz").string();
  gzFile in = gzopen(file.c_str(), "rb");
  if (in == nullptr) return "";
  std::string out;
  char chunk[1 << 16];
  for (int got; (got = gzread(in, chunk, sizeof chunk)) > 0;) out.append(chunk, static_cast<size_t>(got));
  gzclose(in);
  return out;
}

// FNV-1a over the path and the contents of every source, as web/build.mjs computes it.
std::string page_sources_hash(const Path& web) {
  std::vector<std::string> files{"build.mjs", "package.json", "package-lock.json", "tsconfig.json"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(web / "src"))
    if (entry.is_regular_file()) files.push_back(std::filesystem::relative(entry.path(), web).string());
  std::sort(files.begin(), files.end());
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& file : files)
    for (const char byte : file + "\n" + get(web / file)) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

TEST(Page, is_up_to_date_with_its_sources) {
  const std::string page = unpacked_page(), mark = R"(<meta name="heed-sources" content=")";
  const size_t at = page.find(mark);
  ASSERT_NE(at, std::string::npos) << "web/dist/index.html.gz is not a page; ./dev page builds it";
  EXPECT_EQ(page.substr(at + mark.size(), 16), page_sources_hash(kWeb)) << "web/ has changed; ./dev page builds the page";
}

TEST(Page, hash_of_sources_changes_with_every_file) {
  const Folder folder;
  std::filesystem::create_directories(folder / "src/views");
  for (const char* file : {"build.mjs", "package.json", "package-lock.json", "tsconfig.json", "src/a.ts", "src/views/b.ts"})
    put(folder / file, file);
  const std::string before = page_sources_hash(folder.path());
  EXPECT_EQ(before, page_sources_hash(folder.path()));
  put(folder / "src/views/b.ts", "changed");
  EXPECT_NE(page_sources_hash(folder.path()), before);
  put(folder / "src/views/b.ts", "src/views/b.ts");
  EXPECT_EQ(page_sources_hash(folder.path()), before);
  std::filesystem::rename(folder / "src/a.ts", folder / "src/c.ts");
  EXPECT_NE(page_sources_hash(folder.path()), before);
}

TEST(Page, is_small_and_self_contained) {
  EXPECT_LE(std::filesystem::file_size(kWeb / "dist/index.html.gz"), kMostPageBytes);
  const std::string page = unpacked_page();
  for (const char* outside : {"src=\"http", "href=\"http", "url(http", "url(\"http", "import(\"http", "//cdn", "src=\"//"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside << ": the page must not load anything";
}

// The rules for C++ sources also apply to those of the page.
TEST(Page, sources_follow_the_rules) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kWeb / "src")) {
    if (!entry.is_regular_file()) continue;
    ++count;
    const std::string text = get(entry.path()), name = entry.path().filename();
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 300) << name;
    for (const std::string& word : {std::string("TO") + "DO", std::string("FIX") + "ME", std::string("\t"), std::string(" \n")})
      EXPECT_EQ(text.find(word), std::string::npos) << name << ": " << word;
  }
  EXPECT_GT(count, 30);
}

}  // namespace
}  // namespace heed::test
