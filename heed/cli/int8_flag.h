// Weight storage of inference commands: packed f32, or int8 with --int8.
#pragma once

#include "heed/cli/command.h"
#include "heed/nn/params.h"

namespace heed::cli {

inline void add_int8_flag(Flags& flags, bool& int8) {
  flags.flag("--int8", int8, "Store weights as int8: a quarter of the memory, up to three times as fast, almost the same results");
}

inline Weights weights_for(bool int8) { return int8 ? Weights::int8 : Weights::packed; }

}  // namespace heed::cli
