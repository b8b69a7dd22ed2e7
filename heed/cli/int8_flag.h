// How commands that only compute keep a model's weights: packed for the machine, with --int8 as bytes.
#pragma once

#include "heed/cli/command.h"
#include "heed/nn/params.h"

namespace heed::cli {

inline void add_int8_flag(Flags& flags, bool& int8) {
  flags.flag("--int8", int8, "Weights as bytes: a quarter of their memory, up to three times the speed, nearly the same answers");
}

inline Weights weights_for(bool int8) { return int8 ? Weights::int8 : Weights::packed; }

}  // namespace heed::cli
