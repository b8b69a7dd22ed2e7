// The models that are served: those named at the start, and the best models of the runs. Loaded when they are needed, and dropped, the
// longest unused first, when memory is short.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "heed/serve/model_host.h"

namespace heed::serve {

struct ModelsOptions {
  std::vector<std::string> models = {};  // folders of models or runs, NAME=FOLDER or FOLDER
  Path runs = {};                        // empty: none
  int64_t memory = int64_t{8} << 30;     // bytes of parameters in memory
  HostOptions host = {};
};

class Models {
 public:
  Models(const ModelsOptions& options, Metrics& metrics);  // an error if a named one is not a model

  std::vector<ModelInfo> list();                           // in the order of the arguments, then those of the runs
  std::shared_ptr<ModelHost> host(const std::string& id);  // a 404 if there is none, a 422 if it cannot be used
  bool is_loaded(const std::string& id);

 private:
  // -> threads of models that were replaced. They may wait for the mutex, so they must end after it is released.
  [[nodiscard]] std::vector<std::shared_ptr<ModelHost>> find_run_models();
  void make_room(const std::string& id, int64_t bytes);

  const ModelsOptions options_;
  Metrics& metrics_;
  std::mutex mutex_;
  std::vector<ModelInfo> named_, of_runs_;
  std::map<std::string, std::shared_ptr<ModelHost>> hosts_;
};

}  // namespace heed::serve
