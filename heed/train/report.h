// A run, or several side by side, as one page of HTML that needs nothing else: drawn from the files in run folders alone.
#pragma once

#include <span>
#include <string>

#include "heed/io/file.h"

namespace heed {

std::string report_page(std::span<const Path> runs);

}  // namespace heed
