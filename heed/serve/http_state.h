// State shared by the listener and the connections of the HTTP server. It belongs to the server's thread, except
// connection_count and answers; options and callbacks do not change while the server runs.
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
  std::atomic<int64_t> connection_count{0}, answers{0};  // answers: their bytes in memory, until a client has read all of one
  bool stopping = false;                                 // no new connections; every answer is the last of its connection
  int exit_code = 0;
};

// Serves the requests of one client, one after the other. The connection exists until the client disconnects.
void start_connection(const std::shared_ptr<HttpState>& state, boost::asio::ip::tcp::socket socket);
void stop_if_idle(Connection& connection);
void close_now(Connection& connection);

}  // namespace heed::serve
