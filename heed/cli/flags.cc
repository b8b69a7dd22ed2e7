#include "heed/cli/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <iomanip>
#include <map>
#include <sstream>

#include "heed/core/parse.h"

namespace heed::cli {
namespace {

// Without CLI11's own descriptions of types and ranges in --help.
Check checked(const CLI::Validator& validator) {
  return [validator](CLI::Option& option) { option.check(validator.description("")); };
}

// CLI11 does not expose the allowed values of an option, so they are recorded here.
std::map<const CLI::Option*, std::vector<std::string>>& recorded_choices() {
  static std::map<const CLI::Option*, std::vector<std::string>> choices;
  return choices;
}

Flag added(CLI::Option* option) {
  recorded_choices().erase(option);  // of a destroyed option at the same address
  return Flag(option);
}

// A value of type T that fits. CLI11's own checks speak of conversions, and print ranges up to the largest double.
template <class T>
CLI::Validator value_that(const std::function<bool(T)>& fits, const std::string& expected) {
  return CLI::Validator(
      [=](std::string& text) {
        T value{};
        const bool good = CLI::detail::lexical_cast(text, value) && fits(value);
        return good ? std::string() : "found " + text + ", expected " + expected;
      },
      "");
}
CLI::Validator number_that(const std::function<bool(double)>& fits, const std::string& expected) {
  return value_that<double>(fits, expected);
}

// CLI11 wraps numbers that are negative or too large.
template <class T>
CLI::Validator whole_number() {
  return CLI::Validator(
      [](std::string& text) {
        const std::string expected = std::is_signed_v<T> ? "a whole number" : "a whole number of 0 or more";
        return parse_number<T>(text) ? std::string() : "found " + text + ", expected " + expected;
      },
      "");
}

std::string number_text(double value) {
  std::ostringstream text;
  text << std::setprecision(12) << value;  // 1000000000, not 1e+09
  return text.str();
}

// "8589934592" -> "8GB", as sizes are typed
std::string typed_size(const std::string& bytes) {
  int64_t left = parse_number<int64_t>(bytes).value_or(0);
  if (left == 0) return bytes;
  std::string unit;
  for (const char* larger : {"KB", "MB", "GB"})
    if (left % 1024 == 0) left /= 1024, unit = larger;
  return std::to_string(left) + unit;
}

template <class T>
struct ValueOf {
  using Type = T;
};
template <class T>
struct ValueOf<std::optional<T>> {
  using Type = T;
};

}  // namespace

Check positive() {
  return checked(number_that([](double x) { return x > 0; }, "a number above 0"));
}
Check non_negative() {
  return checked(number_that([](double x) { return x >= 0; }, "0 or more"));
}
Check within(double least, double most) {
  return checked(
      number_that([=](double x) { return least <= x && x <= most; }, "a number from " + number_text(least) + " to " + number_text(most)));
}
Check whole_within(int64_t least, int64_t most) {
  return checked(value_that<int64_t>([=](int64_t x) { return least <= x && x <= most; },
                                     "a whole number from " + std::to_string(least) + " to " + std::to_string(most)));
}
Check one_of(std::vector<std::string> choices) {
  std::string expected = "one of ";
  for (const std::string& choice : choices) expected += (&choice == &choices.front() ? "" : ", ") + choice;
  const auto is_choice = [choices](const std::string& text) { return std::find(choices.begin(), choices.end(), text) != choices.end(); };
  return [=](CLI::Option& option) {
    checked(value_that<std::string>(is_choice, expected))(option);
    recorded_choices()[&option] = choices;
  };
}
std::vector<std::string> choices_of(const CLI::Option& option) {
  const auto found = recorded_choices().find(&option);
  return found == recorded_choices().end() ? std::vector<std::string>() : found->second;
}
Check byte_size() {
  return [](CLI::Option& option) {
    option.default_str(typed_size(option.get_default_str()));
    option.transform(CLI::Validator(CLI::AsSizeValue(false).description("")).operation([](std::string& text) -> std::string {
      const std::string typed = text;
      try {
        if (std::isdigit(static_cast<unsigned char>(typed[0])) && CLI::AsSizeValue(false)(text).empty()) return "";
      } catch (const CLI::Error&) {  // unknown unit
      }
      return "found \"" + typed + "\", expected a size of 0 or more, 2GB or 500MB for example";
    }));
  };
}

Flag& Flag::value(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Flag& Flag::usage(const std::string& text) {
  option_->option_text(text);
  return *this;
}

Flag& Flag::required() {
  option_->required();
  return *this;
}

Flag& Flag::hidden() {
  option_->group("");
  return *this;
}

Flag& Flag::no_default() {
  option_->default_str("");
  return *this;
}

Flag& Flag::one_value() {
  option_->allow_extra_args(false);
  return *this;
}

Flag& Flag::many() {
  option_->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  option_->expected(1 << 20, CLI::detail::expected_max_vector_size);  // the minimum only marks the option as taking many values
  return *this;
}

Flag& Flag::must_be(const Check& check) {
  check(*option_);
  return *this;
}

template <class T>
Flag Flags::option(const std::string& name, T& value, const std::string& text) {
  CLI::Option* const option = app_->add_option(name, value, text);
  using Value = typename ValueOf<T>::Type;
  if constexpr (std::is_floating_point_v<Value>)
    checked(value_that<Value>([](Value x) { return std::isfinite(x); }, "a finite number"))(*option);  // strtod accepts nan and inf
  else if constexpr (std::is_integral_v<Value>)
    checked(whole_number<Value>())(*option);
  else if constexpr (!std::is_same_v<T, std::string>)
    option->default_str("");  // of a list CLI11 would print []
  return added(option);
}

template Flag Flags::option(const std::string&, std::string&, const std::string&);
template Flag Flags::option(const std::string&, std::vector<std::string>&, const std::string&);
template Flag Flags::option(const std::string&, int64_t&, const std::string&);
template Flag Flags::option(const std::string&, uint64_t&, const std::string&);
template Flag Flags::option(const std::string&, int&, const std::string&);
template Flag Flags::option(const std::string&, float&, const std::string&);
template Flag Flags::option(const std::string&, double&, const std::string&);
template Flag Flags::option(const std::string&, std::optional<int64_t>&, const std::string&);
template Flag Flags::option(const std::string&, std::optional<uint64_t>&, const std::string&);
template Flag Flags::option(const std::string&, std::optional<float>&, const std::string&);

Flag Flags::each(const std::string& name, const std::function<void(const std::string&)>& use, const std::string& text) {
  return added(app_->add_option_function<std::string>(name, use, text));
}

Flag Flags::flag(const std::string& name, bool& value, const std::string& text) { return added(app_->add_flag(name, value, text)); }

void Flags::completes(const Completer& arguments) {
  if (completes_) *completes_ = arguments;
}

void Flags::footer(const std::string& text) { app_->footer(text); }

Flags Flags::command(const std::string& name, const std::string& text) {
  app_->require_subcommand(1);
  CLI::App* subcommand = app_->add_subcommand(name, text);
  subcommand->option_defaults()->always_capture_default();
  return Flags(*subcommand);
}

}  // namespace heed::cli
