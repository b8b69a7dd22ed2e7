// --image SIZE: a vision transformer on images of another size than its own (models/resolution.h).
#pragma once

#include <memory>
#include <string>

#include "heed/cli/flags.h"
#include "heed/io/temporary.h"

namespace heed::cli {

struct ImageSizeFlag {
  std::string size = {};                         // as typed; empty: the model's own
  std::shared_ptr<TemporaryFolder> folder = {};  // of the model at that size

  void add_to(Flags& flags);
  // The folder to load instead of the model's: the same one if there is no size. command: for errors
  std::string folder_for(const std::string& command, const std::string& model, bool allow_nonfinite);
};

}  // namespace heed::cli
