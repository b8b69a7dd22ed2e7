// Pieces of what a terminal shows.
#pragma once

#include <string>
#include <vector>

#include "heed/lab/result.h"

namespace heed::lab {

size_t wide(std::string_view text);  // letters, not bytes
std::string padded(std::string text, size_t width, bool right = false);
std::vector<std::string> wrapped(const std::string& text, size_t width);

// A figure in a few lines: curves as sparks, maps as shades. Of films some frames.
std::vector<std::string> figure_lines(const Figure& figure, const Terminal& terminal);

}  // namespace heed::lab
