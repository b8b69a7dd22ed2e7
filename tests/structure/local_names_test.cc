// Files of a module are compiled several at a time (cmake/batches.cmake) and then share their anonymous namespaces. So names there differ
// between all files of a module, whichever of them a batch groups.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace heed::test {
namespace {

using LocalNames = std::map<std::string, std::string>;  // name -> its declaration if it is an alias, else empty

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The end of the literal or comment that starts at `at`; `at` if there is none.
size_t end_of_literal(const std::string& code, size_t at) {
  const auto after = [&](const std::string& end, size_t from) {
    const size_t found = code.find(end, from);
    return found == std::string::npos ? code.size() : found + end.size();
  };
  if (code.compare(at, 2, "//") == 0) return std::min(code.find('\n', at), code.size());
  if (code.compare(at, 2, "/*") == 0) return after("*/", at + 2);
  if (code.compare(at, 2, "R\"") == 0) return after(")" + code.substr(at + 2, code.find('(', at) - at - 2) + "\"", at);
  const bool separates_digits = code[at] == '\'' && at > 0 && std::isxdigit(static_cast<unsigned char>(code[at - 1]));
  if (code[at] != '"' && (code[at] != '\'' || separates_digits)) return at;
  size_t end = at + 1;
  while (end < code.size() && code[end] != code[at]) end += code[end] == '\\' ? 2 : 1;
  return end + 1;
}

// Without comments, preprocessor lines and the contents of literals.
std::string plain_code(const std::string& code) {
  std::string out;
  for (size_t at = 0; at < code.size();) {
    if (const size_t end = end_of_literal(code, at); end > at) {
      if (code[at] != '/') out += '0';
      at = end;
    } else if (code[at] == '#' && out.find_last_not_of(" \t") == out.find_last_of('\n')) {
      do at = std::min(code.find('\n', at + 1), code.size());
      while (at < code.size() && code[at - 1] == '\\');
    } else {
      out += code[at++];
    }
  }
  return out;
}

std::string without_template(std::string text) {
  static const std::regex start("^\\s*template\\s*<");
  while (std::regex_search(text, start)) {
    size_t at = text.find('<') + 1;
    for (int depth = 1; depth > 0 && at < text.size(); ++at) depth += text[at] == '<' ? 1 : text[at] == '>' ? -1 : 0;
    text.erase(0, at);
  }
  return text;
}

// The declarations of a block that starts at `at`, without the contents of their parentheses and braces.
std::vector<std::string> declarations_from(const std::string& code, size_t at) {
  std::vector<std::string> out;
  std::string one;
  int depth = 0;
  static const std::regex class_key("^\\s*(struct|class|enum|union)\\b"), initializer("^(?!.*operator)[^=]*=");
  for (; at < code.size() && depth >= 0; ++at) {
    const char c = code[at];
    const bool opens = c == '(' || c == '{', closes = c == ')' || c == '}';
    if (closes) --depth;
    if (depth == 0) one += c;
    if (opens) ++depth;
    if (depth != 0) continue;
    bool ends = c == ';';
    if (c == '}') {  // of a function, unless an initializer or a class continues
      const size_t next = code.find_first_not_of(" \t\n", at + 1);
      const bool goes_on = next != std::string::npos && (code[next] == ';' || code[next] == ',');
      const std::string start = without_template(one);
      ends = !goes_on && !std::regex_search(start, class_key) && !std::regex_search(start, initializer);
    }
    if (ends) out.push_back(std::move(one)), one.clear();
  }
  return out;
}

void add_names(const std::string& declaration, LocalNames& names) {
  static const std::regex alias("^\\s*(using|namespace)\\s+(\\w+)\\s*="),
      type("^\\s*(struct|class|enum class|enum|union|concept)\\s+(\\w+)"), skipped("^\\s*(using|static_assert|[A-Z][A-Z0-9_]+\\s*\\()"),
      declarator("^(\\w+)\\s*[=;{\\[,]");
  const std::string text = without_template(declaration);
  std::smatch match;
  if (std::regex_search(text, match, alias)) {
    names[match[2]] = std::regex_replace(text, std::regex("\\s+"), " ");
  } else if (std::regex_search(text, skipped) || text.find("operator") != std::string::npos) {
    return;
  } else if (std::regex_search(text, match, type)) {
    names[match[2]];
  } else {
    size_t end = text.find_first_of("(={;[");
    while (end != std::string::npos && end > 0 && !is_name_letter(text[end - 1])) --end;
    if (end == std::string::npos || end == 0) return;
    size_t begin = end;
    while (begin > 0 && is_name_letter(text[begin - 1])) --begin;
    if (begin > 0 && text[begin - 1] != ':') names[text.substr(begin, end - begin)];  // X::f is declared elsewhere
    if (text.find('(', end) == end) return;
    for (size_t comma = text.find(',', end); comma != std::string::npos; comma = text.find(',', comma + 1)) {
      const size_t next = std::min(text.find_first_not_of(" \n*&", comma + 1), text.size());
      const std::string rest = text.substr(next);
      if (std::regex_search(rest, match, declarator)) names[match[1]];
    }
  }
}

LocalNames local_names(const std::string& file) {
  const std::string code = plain_code(file);
  static const std::regex start("\\bnamespace\\s*\\{");
  LocalNames names;
  for (std::sregex_iterator block(code.begin(), code.end(), start), last; block != last; ++block)
    for (const std::string& each : declarations_from(code, static_cast<size_t>(block->position() + block->length())))
      add_names(each, names);
  return names;
}

// files: path -> text, of one module. An alias may be repeated if it means the same.
std::vector<std::string> repeated_names(const std::map<std::string, std::string>& files) {
  std::map<std::string, std::pair<std::string, std::string>> seen;  // name -> the first file with it, the alias there
  std::vector<std::string> found;
  for (const auto& [path, text] : files) {
    if (text.find("hwy/foreach_target.h") != std::string::npos) continue;  // kernels are compiled alone
    for (const auto& [name, alias] : local_names(text)) {
      const auto [place, added] = seen.insert({name, {path, alias}});
      if (!added && (alias.empty() || alias != place->second.second))
        found.push_back(name + " is in " + place->second.first + " and " + path);
    }
  }
  return found;
}

TEST(LocalNames, are_unique_within_a_module) {
  std::map<std::string, std::map<std::string, std::string>> modules;
  const std::filesystem::path root = HEED_SOURCE_DIR;
  for (const char* folder : {"heed", "tests", "bench"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".cc") continue;
      std::ifstream in(entry.path());
      modules[entry.path().parent_path()][std::filesystem::relative(entry.path(), root)] =
          std::string(std::istreambuf_iterator<char>(in), {});
    }
  EXPECT_GT(modules.size(), 20u);
  for (const auto& [folder, files] : modules)
    for (const std::string& each : repeated_names(files)) ADD_FAILURE() << each << "; give one of them another name";
}

TEST(LocalNames, include_every_kind_of_name) {
  const LocalNames names = local_names(R"--(
#define SKIPPED(x) namespace { int skipped; }
namespace heed {
int exported() { return 0; }
namespace {
using Alias = std::map<std::string, int>;
struct Type { int member; void inner() {} };
enum class Kind { one, two };
constexpr int64_t kFirst = int64_t{4} << 20, kSecond = 1'000;  // int comment;
const std::vector<std::string> kList{"int text;", "}"}, kOther;
char letter = '{', *pointer = nullptr;
template <class T, class U = std::vector<int>>
T function(const T& x, int y = 0) { return x; }
void Type::member_function() {}
std::ostream& operator<<(std::ostream& out, Type) { return out; }
TEST(Suite, case) { int local; }
const char* raw = R"(namespace { int in_text; })";
}  // namespace
}
)--");
  std::set<std::string> found;
  for (const auto& [name, alias] : names) found.insert(name);
  EXPECT_EQ(found, (std::set<std::string>{"Alias", "Type", "Kind", "kFirst", "kSecond", "kList", "kOther", "letter", "pointer", "function",
                                          "raw"}));
}

TEST(LocalNames, repeated_names_are_reported) {
  const auto count = [](const std::string& a, const std::string& b) {
    return repeated_names({{"a.cc", "namespace {\n" + a + "\n}"}, {"b.cc", "namespace {\n" + b + "\n}"}}).size();
  };
  EXPECT_EQ(count("int f() { return 1; }", "int g() { return 1; }"), 0u);
  EXPECT_EQ(count("int f() { return 1; }", "int f(double) { return 1; }"), 1u);
  EXPECT_EQ(count("struct A {};", "using A = int;"), 1u);
  EXPECT_EQ(count("namespace fs = std::filesystem;", "namespace fs = std::filesystem;"), 0u);
  EXPECT_EQ(count("using A = int;", "using A = long;"), 1u);
  EXPECT_EQ(count("#include \"hwy/foreach_target.h\"\nint f();", "int f();"), 0u);
}

}  // namespace
}  // namespace heed::test
