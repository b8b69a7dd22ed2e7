// Which vector instructions the kernels use: the best that this machine has, or less when HEED_ISA says so.
#pragma once

#include <string>

#include "heed/core/api.h"

namespace HEED_API heed {

// Reads HEED_ISA (avx512, avx2 or baseline) and binds our kernels and oneDNN to it, the first time. Called before any kernel runs.
void apply_instruction_set();

std::string instruction_set();  // the level in use, for people

}  // namespace heed
