#include "heed/serve/http_exchange.h"

#include <boost/asio/post.hpp>

namespace heed::serve {
namespace {

template <class Task>
void in_server_thread(const std::shared_ptr<HttpState>& state, Task task) {
  boost::asio::post(state->io, std::move(task));
}

void answer_whole(const std::shared_ptr<Connection>& connection, Response response) {
  in_server_thread(connection->state(),
                   [connection, answer = std::move(response)]() mutable { connection->answer(std::move(answer), false); });
}

}  // namespace

LiveExchange::LiveExchange(std::shared_ptr<Connection> connection, Request request)
    : connection_(std::move(connection)), request_(std::move(request)) {}

// This may be the last reference to the connection, in another thread. The server's thread destroys it, as it owns the set of connections.
LiveExchange::~LiveExchange() {
  const std::shared_ptr<HttpState> state = connection_->state();
  const HttpServer::ErrorBody& error = state->callbacks.error;
  if (state_ == State::open && error) answer_whole(connection_, {.status = 500, .body = error(500, "no answer was made")});
  end();
  in_server_thread(state, [connection = std::move(connection_)] {});
}

void LiveExchange::reply(Response response) {
  if (becomes(State::open, State::done)) answer_whole(connection_, std::move(response));
}

void LiveExchange::begin(Response head) {
  if (!becomes(State::open, State::streaming)) return;
  in_server_thread(connection_->state(),
                   [connection = connection_, response = std::move(head)]() mutable { connection->answer(std::move(response), true); });
  if (request_.method != "HEAD") return;
  end();
  cancel();  // there is no body to compute
}

bool LiveExchange::write(std::string data) {
  if (cancelled() || state_ != State::streaming) return false;
  const std::shared_ptr<HttpState>& state = connection_->state();
  if (connection_->unsent() > state->options.max_unsent) {
    cancelled_ = true;
    in_server_thread(state, [connection = connection_] { connection->close(); });
    return false;
  }
  connection_->count_unsent(std::ssize(data));
  in_server_thread(state, [connection = connection_, bytes = std::move(data)] { connection->piece(bytes); });
  return true;
}

void LiveExchange::end() {
  if (becomes(State::streaming, State::done))
    in_server_thread(connection_->state(), [connection = connection_] { connection->end_stream(); });
}

}  // namespace heed::serve
