// The HTTP server in this process, with answers from other threads.
#include "heed/serve/http.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <optional>

#include "heed/serve/workers.h"
#include "tests/serve/client.h"

namespace heed::serve {
namespace {

using test::Answer;
using test::request_text;
using test::within_a_minute;
using Client = test::Connection;

// A server in a separate thread, until the end of the test.
class RunningServer {
 public:
  explicit RunningServer(HttpServer::Handler handle, HttpOptions options = {}, HttpServer::Observer observe = {})
      : server_(with_free_port(options),
                {.handle = std::move(handle),
                 .observe = std::move(observe),
                 .error = [](int status, const std::string& message) { return std::to_string(status) + message; }}),
        result_(std::async(std::launch::async, [this] { return server_.run(); })) {}
  ~RunningServer() {
    Client client(server_.port());  // the server handles signals as soon as it answers
    client.send(request_text("GET", "/%"));
    EXPECT_EQ(client.answer().status, 400);
    ::kill(::getpid(), SIGTERM);
    EXPECT_EQ(result_.get(), 0);
  }

  const HttpServer& http() const { return server_; }
  int port() const { return server_.port(); }
  Answer send(const std::string& text) const {
    Client client(port());
    client.send(text);
    return client.answer();
  }

 private:
  static HttpOptions with_free_port(HttpOptions options) {
    options.port = 0;
    return options;
  }

  HttpServer server_;
  std::future<int> result_;
};

// A connection whose last reference is in another thread must not be destroyed there: the server's thread owns the set of connections.
TEST(HttpServer, ends_connections_in_its_own_thread) {
  std::promise<ExchangePtr> taken;
  std::promise<void> blocked, free;
  std::shared_future<void> freed = free.get_future().share();
  const RunningServer server([&](const ExchangePtr& exchange) {
    if (exchange->request().path == "/slow") return taken.set_value(exchange);
    if (exchange->request().path == "/block") {
      blocked.set_value();
      freed.wait();
    }
    exchange->reply({.body = "done"});
  });
  ExchangePtr held;
  {
    Client client(server.port());
    client.send(request_text("GET", "/slow"));
    held = taken.get_future().get();
    held->reply({.body = "done"});
    EXPECT_EQ(client.answer().body, "done");
  }
  EXPECT_EQ(server.send(request_text("GET", "/")).status, 200);  // by now the server has closed the first connection
  Client other(server.port());
  other.send(request_text("GET", "/block"));
  blocked.get_future().wait();
  const int64_t before = server.http().connections();
  held.reset();
  EXPECT_EQ(server.http().connections(), before);
  free.set_value();
  EXPECT_EQ(other.answer().status, 200);
  EXPECT_TRUE(within_a_minute([&] { return server.http().connections() == 1; }));
}

TEST(HttpServer, answers_every_request_of_concurrent_clients) {
  Workers workers(4, 4096);
  const RunningServer server([&](const ExchangePtr& exchange) { workers.post([exchange] { exchange->reply({.body = "done"}); }); });
  std::vector<std::future<int>> clients;
  for (int i = 0; i < 8; ++i)
    clients.push_back(std::async(std::launch::async, [&] {
      int answered = 0;
      for (int j = 0; j < 200; ++j) answered += server.send(request_text("GET", "/")).status == 200 ? 1 : 0;
      return answered;
    }));
  for (std::future<int>& each : clients) EXPECT_EQ(each.get(), 200);
}

TEST(HttpServer, observes_every_request_of_a_connection) {
  std::vector<int> statuses;  // in the server's thread
  {
    const RunningServer server([](const ExchangePtr& exchange) { exchange->reply({}); }, {},
                               [&](const Served& served) { statuses.push_back(served.status); });
    Client client(server.port());
    client.send(request_text("GET", "/"));
    EXPECT_EQ(client.answer().status, 200);
    client.send("nonsense\r\n\r\n");
    EXPECT_EQ(client.answer().status, 400);
    EXPECT_TRUE(client.at_end());
  }
  EXPECT_EQ(statuses, (std::vector<int>{200, 400, 400}));  // the last request makes the server end the connection
}

TEST(HttpServer, refuses_slow_requests) {
  const RunningServer server([](const ExchangePtr& exchange) { exchange->reply({}); }, {.header_seconds = 0.2, .body_seconds = 0.2});
  for (const char* begin : {"GET / HTTP/1.1\r\nHost: loc", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345"}) {
    const Answer answer = server.send(begin);
    EXPECT_EQ(answer.status, 408) << answer.problem;
    EXPECT_EQ(answer.body, "408the request did not arrive in time");
  }
}

// The time limit applies to each part of an answer, so large answers may take longer.
TEST(HttpServer, waits_for_clients_that_keep_reading) {
  constexpr size_t bytes = size_t{24} << 20;
  const RunningServer server([](const ExchangePtr& exchange) { exchange->reply({.body = std::string(bytes, 'x')}); },
                             {.write_seconds = 1.5});
  Client client(server.port());
  client.send(request_text("GET", "/"));
  EXPECT_EQ(client.head().status, 200);
  size_t read = 0;
  for (const size_t part = 65536; read < bytes; read += part) {
    if (client.exactly(part).size() != part) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // all of it takes longer than the limit, a mebibyte much less
  }
  EXPECT_EQ(read, bytes);
}

TEST(HttpServer, answers_dropped_requests_and_ends_streams) {
  const RunningServer server([](const ExchangePtr& exchange) {
    if (exchange->request().path == "/nothing") return;
    if (exchange->request().path == "/memory") throw std::bad_alloc();
    exchange->begin({});
    exchange->write("piece");
    exchange->reply({.status = 500});  // too late
  });
  EXPECT_EQ(server.send(request_text("GET", "/nothing")).status, 500);
  EXPECT_EQ(server.send(request_text("GET", "/memory")).status, 500);
  Client client(server.port());
  client.send(request_text("GET", "/stream") + request_text("GET", "/nothing"));
  const Answer stream = client.answer();
  EXPECT_EQ(stream.status, 200);
  EXPECT_EQ(stream.body, "piece");
  EXPECT_EQ(client.answer().status, 500);  // so the stream has ended
}

TEST(HttpServer, notices_that_a_client_disconnected) {
  std::promise<ExchangePtr> taken;
  const RunningServer server([&](const ExchangePtr& exchange) {
    if (exchange->request().path == "/slow") return taken.set_value(exchange);
    exchange->reply({});
  });
  ExchangePtr slow;
  {
    Client client(server.port());
    client.send(request_text("GET", "/slow"));
    slow = taken.get_future().get();
    EXPECT_FALSE(slow->cancelled());
  }
  EXPECT_TRUE(within_a_minute([&] { return slow->cancelled(); }));
}

// The answer to HEAD has no body, even if that of GET is an endless stream.
TEST(HttpServer, ends_streams_of_head_requests_immediately) {
  std::promise<ExchangePtr> taken;
  const RunningServer server([&](const ExchangePtr& exchange) {
    if (exchange->request().path != "/stream") return exchange->reply({.body = "done"});
    exchange->begin({});
    exchange->write("piece");
    taken.set_value(exchange);
  });
  Client client(server.port());
  client.send(request_text("HEAD", "/stream"));
  const ExchangePtr stream = taken.get_future().get();
  EXPECT_TRUE(stream->cancelled());
  EXPECT_FALSE(stream->write("another"));
  EXPECT_EQ(client.answer(false).status, 200);
  client.send(request_text("GET", "/"));
  EXPECT_EQ(client.answer().body, "done");
}

// Pieces count towards the limit until the server's thread has sent them.
TEST(HttpServer, limits_output_that_is_waiting_to_be_sent) {
  std::promise<ExchangePtr> taken;
  std::promise<void> blocked, free;
  const RunningServer server(
      [&](const ExchangePtr& exchange) {
        if (exchange->request().path == "/stream") {
          exchange->begin({});
          return taken.set_value(exchange);
        }
        blocked.set_value();
        free.get_future().wait();
        exchange->reply({.body = "done"});
      },
      {.max_unsent = 1 << 20});
  Client stream(server.port()), other(server.port());
  stream.send(request_text("GET", "/stream"));
  const ExchangePtr held = taken.get_future().get();
  EXPECT_EQ(stream.head().status, 200);
  other.send(request_text("GET", "/block"));
  blocked.get_future().wait();
  int written = 0;
  while (written < 100 && held->write(std::string(65536, 'x'))) ++written;
  EXPECT_LE(written, 17);
  EXPECT_TRUE(held->cancelled());
  free.set_value();
  EXPECT_EQ(other.answer().status, 200);
}

// Answers stay in memory until they are sent, and clients may read slowly.
TEST(HttpServer, bounds_the_bytes_of_all_answers) {
  constexpr size_t bytes = size_t{32} << 20;  // more than the sockets of a connection take
  std::promise<ExchangePtr> taken;
  const RunningServer server(
      [&](const ExchangePtr& exchange) {
        const std::string& path = exchange->request().path;
        if (path == "/later") return taken.set_value(exchange);
        exchange->reply({.body = std::string(path == "/large" ? bytes : 1, 'x')});
      },
      {.max_answers = 16 << 20});
  Client later(server.port());
  later.send(request_text("GET", "/later"));
  const ExchangePtr accepted = taken.get_future().get();
  {
    Client slow(server.port());
    slow.send(request_text("GET", "/large"));
    EXPECT_EQ(slow.head().status, 200);
    const Answer refused = server.send(request_text("GET", "/"));
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.headers.at("retry-after"), "1");
    accepted->reply({.body = "done"});
    EXPECT_EQ(later.answer().status, 503);
  }
  EXPECT_TRUE(within_a_minute([&] { return server.send(request_text("GET", "/")).status == 200; }));
  Client patient(server.port());
  patient.send(request_text("GET", "/large"));
  EXPECT_EQ(patient.answer().body.size(), bytes);
  EXPECT_EQ(server.send(request_text("GET", "/")).status, 200);
}

// A second signal ends the server at once. Its destructor runs what other threads have posted after that.
TEST(HttpServer, drops_answers_after_a_second_signal) {
  std::promise<ExchangePtr> first, second;
  std::optional<HttpServer> server(
      std::in_place, HttpOptions{.port = 0, .max_answers = 1},
      HttpServer::Callbacks{
          .handle = [&](const ExchangePtr& exchange) { (exchange->request().path == "/first" ? first : second).set_value(exchange); },
          .error = [](int, const std::string& message) { return message; }});
  std::future<int> result = std::async(std::launch::async, [&] { return server->run(); });
  const uint16_t port = server->port();
  Client a(port), b(port);
  a.send(request_text("GET", "/first"));
  b.send(request_text("GET", "/second"));
  ExchangePtr stream = first.get_future().get(), late = second.get_future().get();
  stream->begin({});
  stream->write(std::string(size_t{32} << 20, 'x'));
  EXPECT_EQ(a.head().status, 200);
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(within_a_minute([&] { return !Client(port).connected(); }));
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(result.get(), 128 + SIGTERM);
  EXPECT_TRUE(late->cancelled());
  late->reply({.body = "done"});  // would be 503, as more than max_answers bytes wait
  stream.reset(), late.reset();
  server.reset();
  EXPECT_TRUE(b.at_end());
}

// Requests that a proxy could interpret differently are refused, and nothing after them is read.
TEST(HttpServer, refuses_ambiguous_requests) {
  const RunningServer server([](const ExchangePtr& exchange) { exchange->reply({.body = "done"}); });
  for (const char* headers :
       {"Host: a\r\nHost: b\r\n", "Host: a\r\nTransfer-Encoding: gzip\r\n", "Host: a\r\nTransfer-Encoding: chunked, gzip\r\n",
        "Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n", "Host: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n"}) {
    Client client(server.port());
    client.send("POST / HTTP/1.1\r\n" + std::string(headers) + "\r\n" + request_text("GET", "/"));
    EXPECT_EQ(client.answer().status, 400) << headers;
    EXPECT_TRUE(client.at_end()) << headers;
  }
}

}  // namespace
}  // namespace heed::serve
