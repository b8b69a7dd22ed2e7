// How commands load checkpoints that hold NaN or infinity: not at all, or with a warning.
#pragma once

#include <iostream>

#include "heed/cli/command.h"
#include "heed/nn/params.h"

namespace heed::cli {

inline void add_nonfinite_flag(Flags& flags, bool& allowed) {
  flags.flag("--allow-nonfinite", allowed, "Load weights that are NaN or infinite all the same, with a warning");
}

inline Warn nonfinite_warning(bool allowed) {
  if (!allowed) return {};
  return [](const std::string& message) {
    std::cout.flush();
    std::cerr << "heed: warning: " << message << '\n';
  };
}

}  // namespace heed::cli
