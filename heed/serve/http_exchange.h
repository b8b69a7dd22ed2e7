// A request that waits for its answer. Calls from any thread become tasks of the server's thread.
#pragma once

#include "heed/serve/http_connection.h"

namespace heed::serve {

class LiveExchange : public Exchange {
 public:
  LiveExchange(std::shared_ptr<Connection> connection, Request request);
  ~LiveExchange() override;

  const Request& request() const override { return request_; }
  void reply(Response response) override;
  void begin(Response head) override;
  bool write(std::string data) override;
  void end() override;
  bool cancelled() const override { return cancelled_; }
  void cancel() { cancelled_ = true; }

 private:
  enum class State { open, streaming, done };

  bool becomes(State from, State to) { return state_.compare_exchange_strong(from, to); }

  std::shared_ptr<Connection> connection_;
  Request request_;
  std::atomic<State> state_{State::open};
  std::atomic<bool> cancelled_{false};
};

}  // namespace heed::serve
