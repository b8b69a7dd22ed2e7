// Samples as stored in samples.json: a list of objects with the members of Sample, the image as base64 PNG.
#pragma once

#include "heed/train/task.h"

namespace heed {

void to_json(Json& json, const Sample& sample);
void from_json(const Json& json, Sample& sample);  // FileError if a member has the wrong type

}  // namespace heed
