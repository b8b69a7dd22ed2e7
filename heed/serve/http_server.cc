// Listens, accepts connections and stops: after the first signal running requests finish, after the second they do not.
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <new>

#include "heed/core/check.h"
#include "heed/serve/http_state.h"

namespace heed::serve {
namespace {

namespace net = boost::asio;
using net::ip::tcp;
using StatePtr = std::shared_ptr<HttpState>;

// Every connection is an open file, and shells allow 1,024 of them by default.
void allow_open_files(int64_t connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  constexpr int64_t for_everything_else = 256;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, static_cast<rlim_t>(connections + for_everything_else)));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void stop_at_once(const StatePtr& state, int exit_code) {
  state->exit_code = exit_code;
  for (Connection* each : std::set<Connection*>(state->connections)) close_now(*each);
  state->io.stop();
}

void end_when_idle(const StatePtr& state) {
  if (state->connections.empty()) return state->io.stop();
  const auto timer = std::make_shared<net::steady_timer>(state->io, std::chrono::milliseconds(20));
  timer->async_wait([state, timer](boost::system::error_code) { end_when_idle(state); });
}

void stop_gently(const StatePtr& state) {
  state->stopping = true;
  boost::system::error_code ignored;
  state->acceptor.close(ignored);
  if (state->callbacks.stopping) state->callbacks.stopping();
  for (Connection* each : std::set<Connection*>(state->connections)) stop_if_idle(*each);
  end_when_idle(state);
}

void wait_for_signal(const StatePtr& state) {
  state->signals.async_wait([state](boost::system::error_code error, int number) {
    if (error) return;
    if (state->stopping) return stop_at_once(state, 128 + number);
    stop_gently(state);
    wait_for_signal(state);
  });
}

void accept_next(const StatePtr& state) {
  state->acceptor.async_accept([state](boost::system::error_code error, tcp::socket socket) {
    if (!state->acceptor.is_open()) return;
    if (!error) {
      accept_next(state);
      boost::system::error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      return start_connection(state, std::move(socket));
    }
    // For example no more file descriptors: wait for one instead of trying all the time.
    const auto timer = std::make_shared<net::steady_timer>(state->io, std::chrono::milliseconds(50));
    timer->async_wait([state, timer](boost::system::error_code) { accept_next(state); });
  });
}

}  // namespace

HttpServer::HttpServer(const HttpOptions& options, Callbacks callbacks) : state_(std::make_shared<HttpState>()) {
  state_->options = options;
  state_->callbacks = std::move(callbacks);
  allow_open_files(options.max_connections);
  try {
    tcp::resolver resolver(state_->io);
    const auto found = resolver.resolve(options.host, std::to_string(options.port));
    const tcp::endpoint endpoint = found.begin()->endpoint();
    state_->acceptor.open(endpoint.protocol());
    state_->acceptor.set_option(tcp::acceptor::reuse_address(true));
    state_->acceptor.bind(endpoint);
    state_->acceptor.listen(net::socket_base::max_listen_connections);
  } catch (const boost::system::system_error& error) {
    fail<UsageError>("serve: cannot listen on ", options.host, ":", options.port, ": ", error.code().message(),
                     "; --port 0 takes any free port");
  }
}

HttpServer::~HttpServer() {
  for (Connection* each : std::set<Connection*>(state_->connections)) close_now(*each);
  boost::system::error_code ignored;
  state_->signals.clear(ignored);
  state_->callbacks = {};
  state_->io.restart();
  state_->io.poll();  // cancelled operations release their connections, and the state
}

uint16_t HttpServer::port() const { return state_->acceptor.local_endpoint().port(); }
int64_t HttpServer::connections() const { return state_->connection_count.load(); }
void HttpServer::post(std::function<void()> task) { net::post(state_->io, std::move(task)); }

int HttpServer::run() {
  state_->signals.add(SIGINT);
  state_->signals.add(SIGTERM);
  wait_for_signal(state_);
  accept_next(state_);
  for (;;) try {
      state_->io.run();
      return state_->exit_code;
    } catch (const std::bad_alloc&) {
      continue;  // the connection that needed the memory is closed
    }
}

}  // namespace heed::serve
