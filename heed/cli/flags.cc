#include "heed/cli/flags.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <cmath>
#include <map>

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

// strtod accepts nan and inf, and nan passes every range check.
CLI::Validator finite_number() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        const bool finite = !CLI::detail::lexical_cast(text, value) || std::isfinite(value);
        return finite ? std::string() : "found " + text + ", expected a finite number";
      },
      "");
}

}  // namespace

Check positive() { return checked(CLI::PositiveNumber); }
Check non_negative() { return checked(CLI::NonNegativeNumber); }
Check within(double least, double most) { return checked(CLI::Range(least, most)); }
Check whole_within(int64_t least, int64_t most) { return checked(CLI::Range(least, most)); }
Check one_of(std::vector<std::string> choices) {
  return [choices = std::move(choices)](CLI::Option& option) {
    option.check(CLI::IsMember(choices).description(""));
    recorded_choices()[&option] = choices;
  };
}
std::vector<std::string> choices_of(const CLI::Option& option) {
  const auto found = recorded_choices().find(&option);
  return found == recorded_choices().end() ? std::vector<std::string>() : found->second;
}
Check byte_size() {
  return [](CLI::Option& option) {
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
  if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, std::optional<float>>) option->check(finite_number());
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
