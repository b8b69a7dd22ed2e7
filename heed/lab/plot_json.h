// The data of figures as JSON, for pages that draw them.
#pragma once

#include "heed/io/json.h"
#include "heed/lab/figure.h"

namespace heed::lab {

Json plots_json(const Frame& frame);  // a list

}  // namespace heed::lab
