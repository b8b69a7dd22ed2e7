// The flags of a command, as its file declares them. A thin cover over CLI11: that takes seconds to compile, so that only
// flags.cc and command.cc see it.
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

// A word that a shell may offer, with what it means.
struct Candidate {
  std::string text, meaning;
};
// Words for an argument. before: the arguments that stand before it
using Completes = std::function<std::vector<Candidate>(const std::vector<std::string>& before)>;

// What a value must be. Errors name the flag and the value.
using Check = std::function<void(CLI::Option& option)>;
Check positive();
Check non_negative();
Check within(double least, double most);
Check whole_within(int64_t least, int64_t most);
Check one_of(std::vector<std::string> words);
template <class Map>
Check key_of(const Map& known) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : known) words.push_back(word);
  return one_of(words);
}
Check byte_size();                                             // "2GB" becomes a number of bytes
std::vector<std::string> words_of(const CLI::Option& option);  // that one_of allows; empty: any

// A flag or argument that has been added.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag& value(const std::string& name);  // how --help calls the value
  Flag& shown(const std::string& text);  // all that --help says about the value
  Flag& required();
  Flag& hidden();      // from --help
  Flag& no_default();  // in --help
  Flag& one_value();   // each time it is given; of a flag that may come several times
  Flag& many();        // as many values as there are words
  Flag& must_be(const Check& check);

 private:
  CLI::Option* option_;
};

class Flags {
 public:
  explicit Flags(CLI::App& app, Completes* completes = nullptr) : app_(&app), completes_(completes) {}

  // name: "--flag", "-o,--flag", or "argument". T: std::string, int64_t, int, uint64_t, float, double, vectors of strings, and
  // std::optional of them, which stay empty where the flag is not given
  template <class T>
  Flag option(const std::string& name, T& value, const std::string& text);
  Flag each(const std::string& name, const std::function<void(const std::string& value)>& use, const std::string& text = {});
  Flag flag(const std::string& name, bool& value, const std::string& text);
  void footer(const std::string& text);                             // examples, below all flags in --help
  void completes(const Completes& arguments);                       // what shells offer for arguments, beside files
  Flags command(const std::string& name, const std::string& text);  // one below this one; one of them must be given

 private:
  CLI::App* app_;
  Completes* completes_;  // null: nobody asks
};

}  // namespace heed::cli
