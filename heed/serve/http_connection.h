// The connection of one client: reads a request within limits of size and time, calls the handler, sends the answer, and repeats this until
// the client disconnects. All of it runs in the server's thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <deque>
#include <optional>

#include "heed/serve/http_message.h"
#include "heed/serve/http_state.h"

namespace heed::serve {

class LiveExchange;  // http_exchange.h

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using ErrorCode = boost::system::error_code;

  Connection(std::shared_ptr<HttpState> state, boost::asio::ip::tcp::socket socket);
  ~Connection();  // in the server's thread
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  void stop_if_idle();
  void close();

  // The answer to the request that was passed to the handler.
  void answer(Response response, bool streamed);                                    // a whole one, or with `streamed` only its head
  void count_unsent(int64_t bytes) { unsent_ += bytes, state_->answers += bytes; }  // before piece(). Any thread
  void piece(const std::string& data);
  void end_stream();

  const std::shared_ptr<HttpState>& state() const { return state_; }
  int64_t unsent() const { return unsent_; }  // bytes of the answer that wait for the client. Any thread

 private:
  void wait_for_request();
  void read_header();
  void allow_body();
  void read_body();
  void handle();
  void watch_for_close(const std::shared_ptr<LiveExchange>& exchange);
  void unreadable(ErrorCode error);
  void refuse(int status, const std::string& message);
  Response error_answer(int status, const std::string& message) const;
  Response too_much_unsent() const;
  void send_answer(const Response& response, bool streamed);
  void send(std::string bytes);
  void write_next();
  void finish();
  void next();
  void linger(size_t dropped);
  void observe(bool complete);
  bool is_head() const { return request_.method == "HEAD"; }

  void expect_within(double seconds);  // the operations that follow fail after so many seconds; the socket stays open
  void expect_at_any_time();
  void cancel_late(int64_t deadline);

  std::shared_ptr<HttpState> state_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  int64_t deadline_ = 0;              // counts calls of expect_within()
  bool late_ = false;                 // the time of the last one is over
  boost::beast::flat_buffer buffer_;  // bounded: Beast would read endless extensions and trailers of chunks into it
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  std::string peer_;
  Request request_ = {};
  std::weak_ptr<LiveExchange> exchange_;
  std::chrono::steady_clock::time_point begin_ = {};
  std::deque<std::string> queue_ = {};
  std::atomic<int64_t> unsent_{0};
  size_t sent_of_front_ = 0;
  int64_t sent_bytes_ = 0;
  unsigned version_ = 11;
  int status_ = 0;
  bool busy_ = false, keep_alive_ = true, chunked_ = false, finished_ = false, observed_ = false;
};

}  // namespace heed::serve
