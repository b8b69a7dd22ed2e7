// Text in tables that commands print.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace heed::cli {

// A sentence for a table: at most `longest` characters, control characters replaced by spaces.
std::string display_text(const std::string& sentence, size_t longest = 60);
std::string padded(const std::string& text, int64_t width);  // right-padded with spaces

}  // namespace heed::cli
