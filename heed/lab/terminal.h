// Terminal output.
#pragma once

#include <string>
#include <vector>

#include "heed/lab/result.h"

namespace heed::lab {

size_t display_width(std::string_view text);  // in characters, not bytes
std::string padded(std::string text, size_t width, bool right = false);
std::vector<std::string> wrapped(const std::string& text, size_t width);

// A figure as text: curves as sparklines, maps as shades. Of several frames the first, middle and last.
std::vector<std::string> figure_lines(const Figure& figure, const Terminal& terminal);

}  // namespace heed::lab
