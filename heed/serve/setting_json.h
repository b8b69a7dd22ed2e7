// Descriptions of settings, for forms; the settings of a request as key=value.
#pragma once

#include "heed/io/json_reader.h"
#include "heed/train/settings.h"

namespace heed::serve {

Json setting_json(const SettingInfo& info);
// {"epochs": 3, "flip": true} -> "epochs=3", "flip=true"
std::vector<std::string> assignments_in(const JsonReader& body);

}  // namespace heed::serve
