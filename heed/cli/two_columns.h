// Text in two columns, for help and lists.
#pragma once

#include <ostream>
#include <string>

namespace heed::cli {

// `left`, then the lines of `text` from `column` on, wrapped at 118 letters.
void put_row(std::ostream& out, const std::string& left, const std::string& text, size_t column);

}  // namespace heed::cli
