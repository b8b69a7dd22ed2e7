// The flags of a command. A thin wrapper around CLI11, whose header takes seconds to compile and is included by few files.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace heed::cli {

// A completion offered by the shell, with a description.
struct Candidate {
  std::string text, meaning;
};
// Completions of an argument. before: the arguments before it
using Completer = std::function<std::vector<Candidate>(const std::vector<std::string>& before)>;

// A constraint on a value. Errors name the flag and the value.
using Check = std::function<void(CLI::Option& option)>;
Check positive();
Check non_negative();
Check within(double least, double most);
Check whole_within(int64_t least, int64_t most);
Check one_of(std::vector<std::string> choices);
template <class Map>
Check key_of(const Map& known) {
  std::vector<std::string> choices;
  for (const auto& [name, meaning] : known) choices.push_back(name);
  return one_of(choices);
}
Check byte_size();                                               // "2GB" becomes a number of bytes
std::vector<std::string> choices_of(const CLI::Option& option);  // allowed by one_of; empty: any value

inline constexpr const char* kOutputFlag = "-o,--out,--output";  // the same in all commands

// A flag or argument that has been added.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag& value(const std::string& name);  // placeholder of the value in --help
  Flag& usage(const std::string& text);  // replaces everything --help prints about the value
  Flag& required();
  Flag& hidden();      // from --help
  Flag& no_default();  // in --help
  Flag& one_value();   // per occurrence, of a repeatable flag
  Flag& many();        // takes all remaining values
  Flag& must_be(const Check& check);

 private:
  CLI::Option* option_;
};

class Flags {
 public:
  explicit Flags(CLI::App& app, Completer* completes = nullptr) : app_(&app), completes_(completes) {}

  // name: "--flag", "-o,--flag", or "argument". T: std::string, int64_t, int, uint64_t, float, double, vectors of strings, and
  // std::optional of them, which stay empty if the flag is not given
  template <class T>
  Flag option(const std::string& name, T& value, const std::string& text);
  Flag each(const std::string& name, const std::function<void(const std::string& value)>& use, const std::string& text = {});
  Flag flag(const std::string& name, bool& value, const std::string& text);
  void footer(const std::string& text);                             // examples, below all flags in --help
  void completes(const Completer& arguments);                       // completions of arguments, in addition to file names
  Flags command(const std::string& name, const std::string& text);  // a subcommand; one of them is required

 private:
  CLI::App* app_;
  Completer* completes_;  // null: not needed
};

}  // namespace heed::cli
