// JSON output, one value per line. Invalid UTF-8 (file names can be any bytes) becomes U+FFFD.
#pragma once

#include "heed/io/json.h"

namespace heed::cli {

void print_json_line(const Json& json);

}  // namespace heed::cli
