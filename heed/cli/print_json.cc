#include "heed/cli/print_json.h"

#include <iostream>

namespace heed::cli {

void print_json_line(const Json& json) { std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n'; }

}  // namespace heed::cli
