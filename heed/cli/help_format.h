// The layout of --help.
#pragma once

#include <memory>

namespace CLI {
class FormatterBase;
}  // namespace CLI

namespace heed::cli {

// CLI11's, but arguments are shown as they are typed, MODEL [INPUT...], and not by the names of the variables that hold them.
std::shared_ptr<CLI::FormatterBase> help_format();

}  // namespace heed::cli
