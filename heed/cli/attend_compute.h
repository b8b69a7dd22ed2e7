// What `heed attend` computes: options and tensors become calls of the library.
#pragma once

#include "heed/cli/attend_file.h"

namespace heed::cli {

// out, probabilities and gradients, as far as they were asked for, each with as many axes as q has.
NamedTensors attend(AttendFile& file, const AttendOptions& options);

}  // namespace heed::cli
