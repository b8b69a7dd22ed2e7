// Samples as they stand in samples.json: a list of objects with the members of Sample, the picture as a PNG in base64.
#pragma once

#include "heed/train/task.h"

namespace heed {

void to_json(Json& json, const Sample& sample);
void from_json(const Json& json, Sample& sample);  // FileError where something is missing or of the wrong kind

}  // namespace heed
