// Colours on a terminal.
#pragma once

#include <string>

namespace heed {

enum class Paint { bold, faint, green, yellow, red };

std::string painted(const std::string& text, Paint paint, bool colour);  // the text alone where colour is false

// Whether this file descriptor is a terminal that shows escape sequences, and, of colours, NO_COLOR is not set.
bool is_terminal(int file);
bool has_colour(int file);

std::string painted_headings(const std::string& text, bool colour);  // lines that are not indented and end with a colon are bold

}  // namespace heed
