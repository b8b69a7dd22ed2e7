// Names that other programs give to settings of heed. The one table of them.
#pragma once

#include <string>

namespace heed {

std::string setting_alias(const std::string& typed);  // "lr" -> "rate"; empty: none that is known

}  // namespace heed
