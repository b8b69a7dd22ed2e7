// heed serve: everything but its command line.
#pragma once

#include "heed/serve/http.h"
#include "heed/serve/models.h"

namespace heed::serve {

struct ServeOptions {
  HttpOptions http = {};
  ModelsOptions models = {};
  std::string token = {};                 // empty: none
  std::vector<std::string> origins = {};  // of other sites that may send requests
  int64_t max_tokens = 4096;              // of a generated text
  double max_seconds = 120;               // for a generated text
  bool train = true;                      // runs may be started, stopped and resumed
  bool log = true;                        // a line of JSON on standard error for every request
  std::string program = {};               // this program, for training
  std::string version = {};
};

// Serves until a signal. ready: called with the address when requests are accepted -> exit code
int serve(const ServeOptions& options, const std::function<void(const std::string& address)>& ready);

}  // namespace heed::serve
