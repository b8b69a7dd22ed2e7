// What is wrong with a command line, in words that say what to do.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace heed::cli {

// app: after it has parsed. CLI11's own messages about missing arguments do not name the command.
std::string parse_error_text(const CLI::ParseError& error, const CLI::App& app);

}  // namespace heed::cli
