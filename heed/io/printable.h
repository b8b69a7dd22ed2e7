// Text from outside, such as file names, as messages show it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

// UTF-8 as it is; control characters and bytes that are not UTF-8 as \xNN.
std::string printable(std::string_view text);

// A list for messages: each of the first 20 on a line of its own, then how many more there are.
std::string listed_lines(const std::vector<std::string>& lines);

}  // namespace heed
