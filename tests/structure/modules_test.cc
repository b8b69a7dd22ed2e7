// Rules that the compiler does not check: which module may include which, file length, formatting.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace heed::test {
namespace {

using Sources = std::map<std::string, std::string>;  // path from the root of the tree -> text
using Names = std::set<std::string>;

// What each module may include, besides itself.
const std::map<std::string, Names> kMayInclude = {
    {"core", {"cuda"}},  // memory and launch
    {"cuda", {"core"}},
    {"dist", {"core", "cuda"}},
    {"io", {"core"}},
    {"text", {"core", "io"}},
    {"data", {"core", "io"}},
    {"ops", {"core", "cuda"}},
    {"attention", {"core", "cuda", "ops"}},
    {"nn", {"core", "ops", "attention", "io", "text", "data"}},
    {"models", {"core", "dist", "ops", "attention", "nn", "io", "text", "data"}},
    {"train", {"core", "dist", "cuda", "ops", "attention", "nn", "models", "io", "text", "data"}},
    {"lab", {"core", "dist", "ops", "attention", "nn", "models", "train", "io", "text", "data"}},
    {"cli", {"core", "dist", "cuda", "ops", "attention", "nn", "models", "train", "lab", "serve", "io", "text", "data"}},
    {"serve", {"core", "ops", "attention", "nn", "models", "train", "lab", "io", "text", "data"}},
};

// "heed/ops/view.cc" -> "ops"; empty outside heed/.
std::string module_of(const std::string& path) {
  if (!path.starts_with("heed/")) return "";
  const size_t end = path.find('/', 5);
  return end == std::string::npos ? "" : path.substr(5, end - 5);
}

// Optimizers depend on core only, so that any program can use them.
bool may_include(const std::string& path, const std::string& included) {
  const std::string module = module_of(path), other = module_of(included);
  if (path.starts_with("heed/train/optimizer.") || path.starts_with("heed/train/optimizer_kernels."))
    return other == "core" || included == "heed/train/optimizer.h" || included == "heed/train/optimizer_kernels.h";
  return module == other || kMayInclude.at(module).contains(other);
}

// Only kernels and messages between processes use raw pointers.
bool may_use_raw_pointers(const std::string& path, bool has_kernels) {
  const std::string module = module_of(path);
  return module == "core" || module == "dist" || module == "ops" || module == "attention" ||
         ((module == "data" || module == "train") && has_kernels);
}

// Names that were replaced by the usual words of the field. Whole words, in code and comments.
const std::map<std::string, std::string> kOldNames = {
    {"Ask", "ForwardOptions"},
    {"Witness", "OutputCollector"},
    {"Named", "TensorMap"},
    {"Writing", "DecodeState"},
    {"Kept", "SavedInput"},
    {"Pace", "Throughput"},
    {"Dialect", "ConfigKeys"},
    {"StartRows", "InitialScores"},
    {"PictureReader", "ImageProcessor"},
    {"Learner", "OptimizerStep"},
    {"LearnOptions", "TrainOptions"},
    {"FitResult", "TrainResult"},
    {"picture", "image"},
    {"pictures", "images"},
    {"Picture", "Image"},
    {"Pictures", "Images"},
    {"fade", "rescale"},
    {"mend", "fix"},
    {"graves", "pending"},
    {"last_walk", "final_backward"},
    {"kernel_attention", "linear_attention"},
    {"turn_rows", "transpose_rows"},
    {"bends", "is_nonlinear"},
};

std::vector<std::string> old_names_in(const std::string& line) {
  std::vector<std::string> found;
  std::string word;
  for (const char c : line + ' ')
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
    } else {
      if (kOldNames.contains(word)) found.push_back(word);
      word.clear();
    }
  return found;
}

std::vector<std::string> violations_in(const std::string& path, const std::string& text) {
  std::vector<std::string> found;
  int number = 0;
  const auto report = [&](const std::string& what) { found.push_back(path + ":" + std::to_string(number) + ": " + what); };
  const bool has_kernels = text.find("HWY_") != std::string::npos || text.find("\nvoid cpu::") != std::string::npos,
             in_heed = path.starts_with("heed/");
  if (in_heed && !kMayInclude.contains(module_of(path))) {
    report("no such module");
    return found;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find('\t') != std::string::npos) report("tab");
    if (line.ends_with(' ') || line.ends_with('\r')) report("trailing space");
    for (const std::string& word : {std::string("TO") + "DO", std::string("FIX") + "ME"})
      if (line.find(word) != std::string::npos) report(word);
    if (path != "tests/structure/modules_test.cc" && line.find("of older versions") == std::string::npos)
      for (const std::string& name : old_names_in(line)) report("'" + name + "', write '" + kOldNames.at(name) + "'");
    if (!in_heed || !line.starts_with("#include \"heed/")) continue;
    const std::string included = line.substr(10, line.find('"', 10) - 10);
    if (!may_include(path, included)) report("must not include " + included);
    if (included == "heed/core/raw.h" && !may_use_raw_pointers(path, has_kernels)) report("raw pointers are for kernels");
  }
  const int limit = has_kernels ? 500 : 300;
  if (number > limit) report("longer than " + std::to_string(limit) + " lines");
  return found;
}

std::vector<std::string> violations(const Sources& sources) {
  std::vector<std::string> found;
  for (const auto& [path, text] : sources)
    for (const std::string& violation : violations_in(path, text)) found.push_back(violation);
  return found;
}

Sources read_tree() {
  Sources sources;
  const std::filesystem::path root = HEED_SOURCE_DIR;
  for (const char* folder : {"heed", "tests", "bench", "examples"}) {
    if (!std::filesystem::exists(root / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string end = entry.path().extension();
      if (end != ".h" && end != ".cc") continue;
      std::ifstream in(entry.path());
      sources[std::filesystem::relative(entry.path(), root)] = std::string(std::istreambuf_iterator<char>(in), {});
    }
  }
  return sources;
}

std::string include(const std::string& path) { return "#include \"" + path + "\"\n"; }

TEST(Modules, sources_follow_the_rules) {
  const Sources sources = read_tree();
  EXPECT_GT(sources.size(), 30u);
  for (const std::string& violation : violations(sources)) ADD_FAILURE() << violation;
}

TEST(Modules, allowed_includes_are_accepted) {
  EXPECT_TRUE(violations({{"heed/ops/new.cc", include("heed/core/tensor.h") + include("heed/core/raw.h") + include("heed/ops/ops.h")},
                          {"heed/data/new.cc", include("heed/core/tensor.h") + include("heed/io/json.h")},
                          {"heed/train/optimizer.cc", "HWY_EXPORT(f);\n" + include("heed/core/raw.h") + include("heed/train/optimizer.h")},
                          {"heed/cli/new.cc", include("heed/train/trainer.h") + include("heed/data/idx.h")}})
                  .empty());
}

TEST(Modules, forbidden_includes_are_found) {
  const auto one = [](const std::string& path, const std::string& included) {
    const std::vector<std::string> found = violations({{path, "// first line\n" + include(included)}});
    return found.size() == 1 ? found[0] : std::to_string(found.size()) + " violations";
  };
  EXPECT_EQ(one("heed/core/new.cc", "heed/ops/ops.h"), "heed/core/new.cc:2: must not include heed/ops/ops.h");
  EXPECT_EQ(one("heed/ops/new.h", "heed/nn/linear.h"), "heed/ops/new.h:2: must not include heed/nn/linear.h");
  EXPECT_EQ(one("heed/io/new.h", "heed/ops/ops.h"), "heed/io/new.h:2: must not include heed/ops/ops.h");
  EXPECT_EQ(one("heed/text/new.h", "heed/data/idx.h"), "heed/text/new.h:2: must not include heed/data/idx.h");
  EXPECT_EQ(one("heed/serve/new.cc", "heed/cli/command.h"), "heed/serve/new.cc:2: must not include heed/cli/command.h");
  EXPECT_EQ(one("heed/train/optimizer.cc", "heed/ops/ops.h"), "heed/train/optimizer.cc:2: must not include heed/ops/ops.h");
  EXPECT_EQ(one("heed/train/optimizer_kernels.h", "heed/ops/ops.h"), "heed/train/optimizer_kernels.h:2: must not include heed/ops/ops.h");
  EXPECT_EQ(one("heed/nn/new.cc", "heed/core/raw.h"), "heed/nn/new.cc:2: raw pointers are for kernels");
  EXPECT_EQ(one("heed/train/trainer.cc", "heed/core/raw.h"), "heed/train/trainer.cc:2: raw pointers are for kernels");
  EXPECT_EQ(one("heed/attic/new.cc", "heed/core/tensor.h"), "heed/attic/new.cc:0: no such module");
}

TEST(Modules, files_that_break_the_rules_are_found) {
  const auto count = [](const std::string& text) { return violations({{"heed/core/new.cc", text}}).size(); };
  const auto lines = [](int number) {
    std::string text;
    for (int i = 0; i < number; ++i) text += "int x;\n";
    return text;
  };
  EXPECT_EQ(count("int x;\n"), 0u);
  EXPECT_EQ(count("\tint x;\n"), 1u);
  EXPECT_EQ(count("// a picture\n"), 1u);
  EXPECT_EQ(count("// depicture\n"), 0u);
  EXPECT_EQ(count("\"picture\";  // of older versions\n"), 0u);
  EXPECT_EQ(count("int x; \n"), 1u);
  EXPECT_EQ(count(std::string("// TO") + "DO: later\n"), 1u);
  EXPECT_EQ(count(lines(300)), 0u);
  EXPECT_EQ(count(lines(301)), 1u);
  EXPECT_EQ(count("HWY_EXPORT(f);\n" + lines(499)), 0u);
  EXPECT_EQ(count("HWY_EXPORT(f);\n" + lines(500)), 1u);
}

}  // namespace
}  // namespace heed::test
