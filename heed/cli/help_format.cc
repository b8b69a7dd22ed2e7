#include "heed/cli/help_format.h"

#include <CLI/CLI.hpp>

namespace heed::cli {
namespace {

class HelpFormat : public CLI::Formatter {
 public:
  // The base class prints a second empty line before the footer if there are hidden flags.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(Formatter::make_help(app, std::move(name), mode), "\n\n\n", "\n\n");
  }
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    if (!positional) return Formatter::make_option_name(option, positional);
    return option->get_option_text().empty() ? option->get_type_name() : option->get_option_text();
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() ? "" : Formatter::make_option_opts(option);
  }
  std::string make_option_usage(const CLI::Option* option) const override {
    std::string out = make_option_name(option, true);
    if (option->get_option_text().empty() && option->get_expected_max() > 1 && !out.ends_with("...")) out += "...";
    return option->get_required() || out.starts_with('[') ? out : "[" + out + "]";
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_format() { return std::make_shared<HelpFormat>(); }

}  // namespace heed::cli
