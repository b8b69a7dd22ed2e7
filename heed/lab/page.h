// Pieces of the page of a report.
#pragma once

#include <string>

#include "heed/lab/result.h"

namespace heed::lab {

std::string figure_html(const Figure& figure, const std::string& id);

extern const char* const kLabStyle;  // beside that of training's reports, whose colours it shares
extern const char* const kLabScript;

}  // namespace heed::lab
