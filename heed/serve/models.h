// The models that are served: those named at the start, and the best models of the runs. They are loaded on first use. When memory is
// short, the least recently used are unloaded.
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
  ~Models();
  Models(const Models&) = delete;
  Models& operator=(const Models&) = delete;

  std::vector<ModelInfo> list();                           // in the order of the arguments, then those of the runs
  std::shared_ptr<ModelHost> host(const std::string& id);  // a 404 if there is none
  bool is_loaded(const std::string& id);

 private:
  using Hosts = std::vector<std::shared_ptr<ModelHost>>;

  // -> dropped models that have nothing left to do. Their threads may wait for the mutex, so they must end after it is released.
  [[nodiscard]] Hosts find_run_models();
  void make_room(const std::string& id, int64_t bytes);

  const ModelsOptions options_;
  Metrics& metrics_;
  std::mutex mutex_;
  std::vector<ModelInfo> named_, of_runs_;
  std::map<std::string, std::shared_ptr<ModelHost>> hosts_;
  Hosts dropped_;  // of runs that were deleted or have a better model; they finish their requests
};

}  // namespace heed::serve
