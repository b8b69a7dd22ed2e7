// External text, such as file names, for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/core/api.h"

namespace HEED_API heed {

// Control characters and invalid UTF-8 become \xNN.
std::string printable(std::string_view text);

// A list for messages: the first 20 on separate lines, then the number of the others.
std::string listed_lines(const std::vector<std::string>& lines);

}  // namespace heed
