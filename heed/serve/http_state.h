// Shared by the listener and the connections of the HTTP server. Everything here belongs to the server's thread.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <set>

#include "heed/serve/http.h"

namespace heed::serve {

class Connection;

struct HttpState {
  HttpOptions options;
  HttpServer::Callbacks callbacks;
  boost::asio::io_context io{1};
  boost::asio::ip::tcp::acceptor acceptor{io};
  boost::asio::signal_set signals{io};
  std::set<Connection*> connections = {};
  std::atomic<int64_t> connection_count{0};
  bool stopping = false;  // no new connections; every answer is the last of its connection
  int exit_code = 0;
};

// Serves the requests of one client, one after the other, and keeps itself alive until the client goes.
void start_connection(const std::shared_ptr<HttpState>& state, boost::asio::ip::tcp::socket socket);
void stop_if_idle(Connection& connection);
void close_now(Connection& connection);

}  // namespace heed::serve
