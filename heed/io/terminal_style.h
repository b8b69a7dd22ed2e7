// Colours on a terminal.
#pragma once

#include <string>

namespace heed {

enum class TextStyle { bold, faint, green, yellow, red };

std::string styled(const std::string& text, TextStyle paint, bool colour);  // unchanged if colour is false

// Whether a file descriptor is a terminal with escape sequences; has_colour also requires that NO_COLOR is not set.
bool is_terminal(int file);
bool has_colour(int file);

std::string styled_headings(const std::string& text, bool colour);  // makes unindented lines that end with a colon bold

}  // namespace heed
