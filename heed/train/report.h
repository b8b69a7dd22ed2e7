// HTML report of one run, or of several side by side. A single self-contained page, built only from the files in the run folders.
#pragma once

#include <span>
#include <string>

#include "heed/core/api.h"
#include "heed/io/file.h"

namespace HEED_API heed {

// The page as HTML. runs: folders of runs
std::string report_page(std::span<const Path> runs);

}  // namespace heed
