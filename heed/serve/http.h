// The HTTP server behind a small interface: requests come in, answers go out whole or piece by piece. Beast stays in http_*.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace heed::serve {

struct Request {
  std::string method = {}, path = {}, body = {};  // path: without the query, percent-decoded by segment
  std::vector<std::string> segments = {};         // of the path: "/v1/models/a%2Fb" -> "v1", "models", "a/b"
  std::map<std::string, std::string> query = {};
  std::map<std::string, std::string> headers = {};  // lower-case names
  std::string peer = {};                            // address of the client

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Response {
  int status = 200;
  std::string type = "application/json", body = {};
  Headers headers = {};
};

// A request and its answer. Every function may be called from any thread. An exchange that is dropped without an answer gives a 500.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;

  virtual void reply(Response response) = 0;  // the whole answer; only the first one counts
  // Or piece by piece: begin, write any number of times, end.
  virtual void begin(Response head) = 0;      // its body is not used
  virtual bool write(std::string piece) = 0;  // false: the client has gone, or reads too slowly
  virtual void end() = 0;
  virtual bool cancelled() const = 0;  // the client has gone, or the server stops at once
};
using ExchangePtr = std::shared_ptr<Exchange>;

// What an answer was, for logs and counters.
struct Served {
  const Request& request;
  int status;
  int64_t bytes;
  double seconds;
  bool complete;  // false: the client went away before
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // 0: any free one
  int64_t max_body = int64_t{8} << 20, max_header = int64_t{64} << 10;
  int64_t max_connections = 1024;
  double idle_seconds = 60;               // without a request
  double header_seconds = 10;             // from the first byte of a request to the end of its headers
  double body_seconds = 30;               // for the body
  double write_seconds = 30;              // for a piece of an answer
  int64_t max_unsent = int64_t{4} << 20;  // bytes of a stream that the client has not read
};

struct HttpState;  // http_state.h

class HttpServer {
 public:
  using Handler = std::function<void(const ExchangePtr& exchange)>;  // called by the server's thread: must return at once
  using Observer = std::function<void(const Served& served)>;        // the same
  // An answer to a request that cannot be read: status and what was wrong.
  using ErrorBody = std::function<std::string(int status, const std::string& message)>;

  struct Callbacks {
    Handler handle = {};
    Observer observe = {};
    ErrorBody error = {};
    std::function<void()> stopping = {};  // the first signal: no new connections
  };

  HttpServer(const HttpOptions& options, Callbacks callbacks);  // listens; a UsageError if it cannot
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  int64_t connections() const;
  // Until SIGTERM or SIGINT and the end of what runs. -> 0, or 130 if a second signal stopped it at once
  int run();
  void post(std::function<void()> task);  // runs in the server's thread

 private:
  std::shared_ptr<HttpState> state_;
};

}  // namespace heed::serve
