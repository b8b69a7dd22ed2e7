// The application: routes of the API, the models and runs that it serves, and where requests are computed.
#pragma once

#include <atomic>

#include "heed/serve/answer.h"
#include "heed/serve/guard.h"
#include "heed/serve/models.h"
#include "heed/serve/run_processes.h"
#include "heed/serve/run_watch.h"
#include "heed/serve/server.h"
#include "heed/serve/workers.h"

namespace heed::serve {

class App;

// A request and what its endpoint needs to answer it.
struct Call {
  App& app;
  ExchangePtr exchange;
  std::map<std::string, std::string> path = {};  // parts of the path: {task}, {name}

  const Request& request() const { return exchange->request(); }
  Json body() const;  // an object; errors are 400, 415
  std::string query(const std::string& name) const;

  void reply(const Json& json, int status = 200) const { reply(json_response(json, status)); }
  void reply(Response response) const;
  void begin_events() const { exchange->begin(events_head()); }  // server-sent events follow
  Response events_head() const;
  void fail(std::exception_ptr error) const;
  Failed failed() const;  // these are for jobs of a model
  Cancelled cancelled() const;

  // Answers with the result of make(), called by another thread, or with its error.
  void reply_later(std::function<Json()> make) const;
};

// here: in the server's thread, at once; start: one after the other, may take seconds; lab: one after the other, may take minutes
enum class Where { here, worker, start, lab };

struct Endpoint {
  std::string method, path;  // "/api/runs/{task}/{name}"
  Where where = Where::worker;
  std::function<void(const Call& call)> answer = {};
};
using Endpoints = std::vector<Endpoint>;

class App {
 public:
  App(const ServeOptions& options, std::function<int64_t()> connections);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  void handle(const ExchangePtr& exchange);
  void observe(const Served& served);
  void stop() { stopping_ = true; }

  const ServeOptions& options() const { return options_; }
  Models& models() { return models_; }
  Metrics& metrics() { return metrics_; }
  Workers& workers() { return workers_; }
  RunWatch& run_watch() { return run_watch_; }
  RunProcesses& run_processes() { return run_processes_; }
  bool stopping() const { return stopping_; }
  int64_t connections() const { return connections_(); }
  const GuardOptions& guard() const { return guard_; }

 private:
  Workers& workers_for(Where where);
  const Endpoint* find(const Request& request, std::map<std::string, std::string>& path, std::string& allowed) const;
  std::string route_of(const Request& request) const;

  const ServeOptions options_;
  const std::function<int64_t()> connections_;
  GuardOptions guard_;
  Endpoints endpoints_;
  Metrics metrics_;
  std::atomic<bool> stopping_{false};
  Workers workers_, starts_, lab_;
  Models models_;
  RunProcesses run_processes_;
  RunWatch run_watch_;
};

Endpoints all_endpoints();

// Those of each file api_*.cc.
Endpoints server_endpoints();      // page, health, metrics, openapi.json
Endpoints info_endpoints();        // /v1/models, /api/info
Endpoints completion_endpoints();  // /v1/completions
Endpoints chat_endpoints();        // /v1/chat/completions
Endpoints embedding_endpoints();   // /v1/embeddings
Endpoints classify_endpoints();
Endpoints translate_endpoints();
Endpoints tokenize_endpoints();
Endpoints term_endpoints();
Endpoints attend_endpoints();
Endpoints inspect_endpoints();
Endpoints run_endpoints();
Endpoints setting_endpoints();
Endpoints lab_endpoints();
Endpoints cost_endpoints();

}  // namespace heed::serve
