// JSON for machines, one value a line. Names of files may be any bytes; what is not UTF-8 becomes U+FFFD.
#pragma once

#include "heed/io/json.h"

namespace heed::cli {

void print_json_line(const Json& json);

}  // namespace heed::cli
