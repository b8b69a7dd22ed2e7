// Long lines of help, wrapped for a terminal.
#pragma once

#include <string>

namespace heed::cli {

// Lines of at most `width` letters. A line that continues is indented like the last column of its first line. Examples of commands stay
// whole, so that they can be copied.
std::string wrapped(const std::string& text, size_t width);

// Wrapped if standard output is a terminal, else as it is.
std::string for_terminal(const std::string& text);

}  // namespace heed::cli
