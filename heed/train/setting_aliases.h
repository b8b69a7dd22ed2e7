// Names that other programs use for heed's settings.
#pragma once

#include <string>

namespace heed {

std::string setting_alias(const std::string& typed);  // "lr" -> "rate"; empty if unknown

}  // namespace heed
