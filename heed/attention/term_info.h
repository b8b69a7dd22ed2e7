// The descriptor of a score term. config.json, key=value settings, `heed attend`, costs, help and the tables in docs/ read it.
#pragma once

#include <cmath>
#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace HEED_API heed {

using TermValues = std::map<std::string, double>;  // the settings of a term by name; flags are 0 or 1

// Where a term is used.
struct TermPlace {
  int64_t tokens = 1;             // at most
  int64_t rows = 0, columns = 0;  // of the grid; 0: there is none
  int64_t layer = 0;
};

// The default of a setting: a number, or a function of the place and of the settings before it.
struct UsualValue {
  std::function<double(const TermPlace& place, const TermValues& before)> of;

  // A number, or a function.
  UsualValue(double number) : of([number](const TermPlace&, const TermValues&) { return number; }) {}
  template <std::invocable<const TermPlace&, const TermValues&> Function>
  UsualValue(Function function) : of(std::move(function)) {}
};

// A setting of a term: its type, name, one line about it, its usual value and its range.
struct TermSetting {
  enum class Type { whole, number, flag };
  std::string name, meaning;
  UsualValue usual;
  double least = 0;  // integers: minimum; other numbers must be greater
  Type type = Type::whole;

  std::string expected() const;  // "a whole number of 0 or more"
};

// A size of a tensor: times * setting + plus.
struct TermSize {
  int64_t plus = 0, times = 0;
  std::string setting = {};
};

// A tensor of shape (H, sizes).
struct TermParameter {
  std::string name;       // in checkpoints
  std::string file_name;  // in files of `heed attend`
  std::string meaning;    // of such a file
  std::vector<TermSize> sizes = {};
  std::function<Tensor(const Shape& shape, Rng& rng)> initial = {};  // initializer; empty: that of other positions
  bool learned = true;                                               // false: computed by models and not in checkpoints

  // For so many heads and these settings.
  Shape shape(int64_t heads, const TermValues& values) const;
  std::string shape_text() const;     // "(H, 2 reach + 1)"
  std::string headless_text() const;  // the same for all heads: "(2 reach + 1)"
};

// How a term is selected in models.
enum class TermUse {
  call,      // not: it needs tensors of a call
  position,  // in the list "positions", setting position=
  pattern,   // in the list "pattern"
  key,       // by a key of its own, whose value is its first setting
};

// The description of a term.
struct TermInfo {
  std::string name;                            // in settings and in config.json
  std::vector<std::string> aliases = {};       // other accepted names
  std::string summary, source = {};            // one line each; source: the paper
  TermUse use = TermUse::call;                 // by models
  bool masks = false;                          // only removes keys
  bool needs_grid = false;                     // tokens of an image; else any tokens
  bool needs_content = false;                  // queries and keys
  bool needs_all_tokens = false;               // at once, so it does not work with a cache
  int64_t products = 0;                        // multiply-adds of a score in matrix products, for every feature of a head
  std::vector<TermSetting> settings = {};      // in the order of "name:VALUE:VALUE"
  std::vector<TermParameter> parameters = {};  // in the order of TermInput::tensors
  std::string struct_name = {}, file = {};     // in C++, filled in by term_infos()

  bool is_named(const std::string& typed) const;                  // by name or alias
  std::string settings_text(const std::string& separator) const;  // "BEFORE:AFTER:GLOBALS"
  std::string usage() const;                                      // "window:BEFORE:AFTER:GLOBALS"
};

// The input of make(): a value for every setting, a tensor for every parameter.
struct TermInput {
  TermValues values = {};
  Tensors tensors = {};
  TermPlace place = {};

  // The value of a setting that is a whole number.
  int64_t whole(const std::string& setting) const { return static_cast<int64_t>(values.at(setting)); }
};

// Adds the defaults of missing settings. Unknown settings are an error.
void complete_settings(const TermInfo& info, TermValues& values, const TermPlace& place);
// "4", "shifted": an error that says what was expected.
double parse_setting(const TermSetting& setting, const std::string& text);
// Settings in order, trailing ones may be missing: "4:2". Empty: none
TermValues parse_settings(const TermInfo& info, const std::string& text, char separator);

// Keys that a query i sees: those j of the ranges with j - i divisible by step.
struct VisibleKeys {
  std::vector<std::pair<int64_t, int64_t>> ranges;  // [first, end), ascending, disjoint
  int64_t step = 1;
};

}  // namespace heed
