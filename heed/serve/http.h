// The interface of the HTTP server: it receives requests and sends answers, whole or in pieces. Only http_*.cc use Beast.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace heed::serve {

struct Request {
  std::string method = {}, path = {}, body = {};  // path: as sent, without the query
  std::vector<std::string> segments = {};         // of the path, percent-decoded: "/v1/models/a%2Fb" -> "v1", "models", "a/b"
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

// A request and its answer. Every function may be called from any thread. If all references are dropped without an answer, it is 500.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;

  virtual void reply(Response response) = 0;  // the whole answer; only the first one counts
  // Or in pieces: begin, write any number of times, end.
  virtual void begin(Response head) = 0;      // its body is not used
  virtual bool write(std::string piece) = 0;  // false: the client has disconnected, or reads too slowly
  virtual void end() = 0;
  virtual bool cancelled() const = 0;  // the client has disconnected, or the server stops at once
};
using ExchangePtr = std::shared_ptr<Exchange>;

// An answer that was sent, for logs and counters.
struct Served {
  const Request& request;
  int status;
  int64_t bytes;
  double seconds;
  bool complete;  // false: the client disconnected before its end
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // 0: any free one
  int64_t max_body = int64_t{8} << 20, max_header = int64_t{64} << 10;
  int64_t max_connections = 1024;
  double idle_seconds = 60;                  // without a request
  double header_seconds = 10;                // from the first byte of a request to the end of its headers
  double body_seconds = 30;                  // for the body
  double write_seconds = 30;                 // for a mebibyte of an answer
  int64_t max_unsent = int64_t{4} << 20;     // bytes of a stream that the client has not read
  int64_t max_answers = int64_t{512} << 20;  // bytes of all answers that are being sent; above that, requests get 503
};

struct HttpState;  // http_state.h

class HttpServer {
 public:
  using Handler = std::function<void(const ExchangePtr& exchange)>;  // runs in the server's thread: must not wait
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
  // Until SIGTERM or SIGINT, and until running requests are finished. -> 0, or 128 + the number of a second signal, which stops at once
  int run();
  void post(std::function<void()> task);  // runs in the server's thread

 private:
  std::shared_ptr<HttpState> state_;
};

}  // namespace heed::serve
