// Parses the target of a request line: path, segments and query.
#pragma once

#include <optional>
#include <string_view>

#include "heed/serve/http.h"

namespace heed::serve {

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space = false);  // none: not valid
bool read_target(std::string_view target, Request& request);  // false: not valid. Its host, if it has one, replaces that of the request

}  // namespace heed::serve
