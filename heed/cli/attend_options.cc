// Parsing by the table of options, and checks of which options and tensors go together.
#include "heed/cli/attend_options.h"

#include <algorithm>
#include <sstream>

#include "heed/cli/attend_argument.h"
#include "heed/core/nearest.h"
#include "heed/core/parse.h"
#include "heed/io/file.h"

namespace heed::cli {
namespace {

template <class Table>
std::vector<std::string> names(const Table& table) {
  std::vector<std::string> all;
  for (const auto& row : table) all.push_back(row.name);
  return all;
}

template <class Table>
auto find(const Table& table, const std::string& name) {
  return std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.is_named(name); });
}

std::string kinds_of(const AttendKinds& kinds) {
  std::string text;
  for (const AttendKind kind : kinds) text += (text.empty() ? "kind=" : " or ") + name_of(kind);
  return text;
}

// -> the first unmet need. "a|b": either of them, "a b": both
std::string missing(const std::string& needs, const std::set<std::string>& present) {
  std::istringstream all(needs);
  for (std::string alternatives; all >> alternatives;) {
    std::istringstream some(alternatives);
    std::string text;
    bool found = false;
    for (std::string name; std::getline(some, name, '|');) {
      found = found || present.contains(name);
      const auto option = find(attend_options(), name);
      text += (text.empty() ? "" : " or ") + (option == attend_options().end() ? "the tensor " + name : name + "=...");
    }
    if (!found) return text;
  }
  return "";
}

}  // namespace

std::string name_of(AttendKind kind) { return kind == AttendKind::softmax ? "softmax" : kind == AttendKind::linear ? "linear" : "channel"; }

AttendOptions parse_attend(const std::vector<std::string>& arguments) {
  AttendOptions o;
  for (const std::string& argument : arguments) {
    const auto [name, text] = *parse_key_value(argument);
    const auto option = find(attend_options(), name);
    if (option == attend_options().end()) {
      check<UsageError>(find(attend_tensors(), name) == attend_tensors().end(), "attend: ", name,
                        " is a tensor, not an option; expected it in the file");
      fail<UsageError>("attend: unknown option '", name, "'", did_you_mean(name, names(attend_options())));
    }
    check<UsageError>(o.given.insert(option->name).second, "attend: ", name, " is given twice");
    option->read(o, {name, text, option->value});
  }
  check<UsageError>(!o.given.contains("beta") || !o.given.contains("scale"), "attend: beta and scale are the same, expected one of them");
  check<UsageError>(o.content || !o.beta, "attend: content=false with beta=", o.beta.value_or(0),
                    ", expected one of them: it means beta=0");
  if (!o.content) o.beta = 0.0f;
  if (o.hard != Hard::no) o.hard = o.hard_gradient;
  check<UsageError>(o.kind != AttendKind::linear || o.beta.value_or(0) >= 0, "attend: kind=linear with beta=", o.beta.value_or(0),
                    ", expected 0 or more");
  if (o.random_features && !o.given.contains("features")) o.features = "random";
  constexpr int64_t most_features = 65536;  // more cost more than exact softmax with 65,536 keys
  check<UsageError>(o.random_features.value_or(1) <= most_features, "attend: random_features=", o.random_features.value_or(1),
                    ", expected at most ", most_features);
  check<UsageError>(!o.random_features || o.features == "random", "attend: random_features with features=", o.features,
                    ", expected features=random");
  return o;
}

void check_attend_needs(const AttendOptions& o, const std::string& file, const std::set<std::string>& tensors) {
  std::set<std::string> present = o.given;
  present.insert(tensors.begin(), tensors.end());
  const auto fits = [&](const auto& row) { return std::find(row.kinds.begin(), row.kinds.end(), o.kind) != row.kinds.end(); };
  for (const std::string& name : o.given) {
    const AttendOption& option = *find(attend_options(), name);
    check<UsageError>(fits(option), "attend: ", name, " has no meaning with kind=", name_of(o.kind), ", only with ",
                      kinds_of(option.kinds));
    const std::string lack = missing(option.needs, present);
    check<UsageError>(lack.empty(), "attend: ", name, " needs ", lack);
  }
  for (const std::string& name : tensors) {
    const auto row = find(attend_tensors(), name);
    check<FileError>(row != attend_tensors().end(), file, ": unknown tensor ", in_quotes(name), did_you_mean(name, names(attend_tensors())),
                     " (ignore=", name, " leaves it out)");
    check<FileError>(fits(*row), file, ": the tensor ", name, " has no meaning with kind=", name_of(o.kind), ", only with ",
                     kinds_of(row->kinds), " (ignore=", name, " leaves it out)");
    const std::string lack = missing(row->needs, present);
    check<FileError>(lack.empty(), file, ": the tensor ", name, " needs ", lack, " (ignore=", name, " leaves it out)");
  }
}

}  // namespace heed::cli
