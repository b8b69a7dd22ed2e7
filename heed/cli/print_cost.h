// The report of heed cost: a table of modules and a table of totals.
#pragma once

#include <ostream>

#include "heed/train/cost_report.h"

namespace heed::cli {

void print_cost(std::ostream& out, const CostReport& report, bool all);

}  // namespace heed::cli
