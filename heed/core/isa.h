// Which vector instructions the kernels use: the best that the CPU supports, or a lower set selected by HEED_ISA.
#pragma once

#include <string>

#include "heed/core/api.h"

namespace HEED_API heed {

// Reads HEED_ISA (avx512, avx2 or baseline) and applies it to heed's kernels and oneDNN, on the first call. Called before any kernel runs.
void apply_instruction_set();

std::string instruction_set();  // the set in use, for messages

}  // namespace heed
