// Parts of the HTML report.
#pragma once

#include <string>

#include "heed/lab/result.h"

namespace heed::lab {

std::string figure_html(const Figure& figure, const std::string& id);

extern const char* const kLabStyle;  // in addition to kReportStyle, whose colours it uses
extern const char* const kLabScript;

}  // namespace heed::lab
