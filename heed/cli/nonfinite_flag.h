// Checkpoints with NaN or infinite weights are refused, or with --allow-nonfinite loaded with a warning.
#pragma once

#include <iostream>

#include "heed/cli/command.h"
#include "heed/nn/params.h"

namespace heed::cli {

inline void add_nonfinite_flag(Flags& flags, bool& allowed) {
  flags.flag("--allow-nonfinite", allowed, "Load NaN or infinite weights, with a warning, instead of refusing them");
}

inline Warn nonfinite_warning(bool allowed) {
  if (!allowed) return {};
  return [](const std::string& message) {
    std::cout.flush();
    std::cerr << "heed: warning: " << message << '\n';
  };
}

}  // namespace heed::cli
