// The computation of `heed attend`: maps its options and tensors to calls of the library.
#pragma once

#include "heed/cli/attend_file.h"

namespace heed::cli {

// -> out, and if requested probabilities and gradients; each has the rank of q
NamedTensors attend(AttendFile& file, const AttendOptions& options);

}  // namespace heed::cli
