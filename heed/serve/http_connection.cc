#include "heed/serve/http_connection.h"

#include <boost/asio/write.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/read.hpp>

#include "heed/io/file.h"
#include "heed/serve/http_exchange.h"
#include "heed/serve/request_target.h"

namespace heed::serve {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;
using net::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr size_t kTimedBytes = size_t{1} << 20;  // of an answer, which must be sent in HttpOptions::write_seconds
constexpr size_t kReadBytes = 65536;             // that Beast reads at a time

std::chrono::milliseconds milliseconds(double seconds) { return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3)); }

}  // namespace

Connection::Connection(std::shared_ptr<HttpState> state, tcp::socket socket)
    : state_(std::move(state)),
      socket_(std::move(socket)),
      timer_(state_->io),
      buffer_(static_cast<size_t>(state_->options.max_header) + kReadBytes) {
  state_->connections.insert(this);
  ++state_->connection_count;
  ErrorCode ignored;
  peer_ = socket_.remote_endpoint(ignored).address().to_string();
}

Connection::~Connection() {
  state_->connections.erase(this);
  --state_->connection_count;
  for (const std::string& each : queue_) state_->answers -= std::ssize(each);
}

void Connection::start() {
  if (std::ssize(state_->connections) > state_->options.max_connections)
    return refuse(503, "there are " + std::to_string(state_->options.max_connections) + " connections, expected fewer: try again later");
  wait_for_request();
}

void Connection::stop_if_idle() {
  if (!busy_ && buffer_.size() == 0) close();
}

void Connection::close() {
  ErrorCode ignored;
  socket_.shutdown(tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
  expect_at_any_time();
  if (const auto exchange = exchange_.lock()) exchange->cancel();
}

void Connection::expect_within(double seconds) {
  late_ = false;
  timer_.expires_after(milliseconds(seconds));
  cancel_late(++deadline_);
}

void Connection::expect_at_any_time() {
  ++deadline_;
  timer_.cancel();
}

// An operation that reads several times may be between two reads, when there is nothing to cancel: repeated until it ends.
void Connection::cancel_late(int64_t deadline) {
  timer_.async_wait([weak = weak_from_this(), deadline](ErrorCode error) {
    const std::shared_ptr<Connection> self = weak.lock();
    if (error || !self || deadline != self->deadline_) return;
    self->late_ = true;
    ErrorCode ignored;
    self->socket_.cancel(ignored);
    self->timer_.expires_after(std::chrono::milliseconds(20));
    self->cancel_late(deadline);
  });
}

void Connection::wait_for_request() {
  busy_ = false;
  if (state_->stopping) return close();
  if (buffer_.size() > 0) return read_header();
  expect_within(state_->options.idle_seconds);
  socket_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](ErrorCode error, size_t bytes) {
    if (error) return self->close();
    self->buffer_.commit(bytes);
    self->read_header();
  });
}

void Connection::read_header() {
  busy_ = true;
  begin_ = Clock::now();
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(state_->options.max_header));
  parser_->body_limit(static_cast<uint64_t>(state_->options.max_body));
  expect_within(state_->options.header_seconds);
  http::async_read_header(socket_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, size_t) {
    if (error) return self->unreadable(error);
    const auto& message = self->parser_->get();
    // A proxy in front could see other requests in the same bytes.
    if (message.count(http::field::host) > 1) return self->refuse(400, "found several Host headers, expected one");
    if (message.count(http::field::transfer_encoding) > 0 && !self->parser_->chunked())
      return self->refuse(
          400, "Transfer-Encoding: found " + in_quotes(std::string(message[http::field::transfer_encoding]), 60) + ", expected chunked");
    if (message.version() >= 11 && !self->parser_->is_done() && beast::iequals(message[http::field::expect], "100-continue"))
      return self->allow_body();
    self->read_body();
  });
}

void Connection::allow_body() {
  net::async_write(socket_, net::buffer("HTTP/1.1 100 Continue\r\n\r\n", 25), [self = shared_from_this()](ErrorCode error, size_t) {
    if (error) return self->close();
    self->read_body();
  });
}

void Connection::read_body() {
  expect_within(state_->options.body_seconds);
  http::async_read(socket_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, size_t) {
    if (error) return self->unreadable(error);
    self->handle();
  });
}

void Connection::unreadable(ErrorCode error) {
  if (!socket_.is_open()) return close();  // closed by the server: no answer
  const auto [status, message] = explain(late_ ? ErrorCode(beast::error::timeout) : error, state_->options);
  status == 0 ? close() : refuse(status, message);
}

Response Connection::error_answer(int status, const std::string& message) const {
  const HttpServer::ErrorBody& body = state_->callbacks.error;
  Response out{.status = status, .body = body ? body(status, message) : ""};  // none: the server ends
  if (status == 503) out.headers.emplace_back("Retry-After", "1");
  return out;
}

Response Connection::too_much_unsent() const {
  return error_answer(503,
                      "answers of " + std::to_string(state_->answers) + " bytes are waiting for clients that read slowly: try again later");
}

// An answer without a request.
void Connection::refuse(int status, const std::string& message) {
  busy_ = true;
  keep_alive_ = observed_ = false;
  begin_ = Clock::now();
  request_ = Request{.method = "-", .path = "-", .peer = peer_};
  send_answer(error_answer(status, message), false);
}

void Connection::handle() {
  if (!socket_.is_open()) return close();
  expect_at_any_time();
  auto& message = parser_->get();
  version_ = message.version();
  keep_alive_ = message.keep_alive();
  observed_ = false;
  Request request = request_in(message);
  request.peer = peer_;
  const bool readable = read_target({message.target().data(), message.target().size()}, request);
  request_ = Request{.method = request.method, .path = request.path, .headers = request.headers, .peer = peer_};
  if (!readable) return send_answer(error_answer(400, "the path of the request is not valid"), false);
  if (state_->answers > state_->options.max_answers) return send_answer(too_much_unsent(), false);
  const auto exchange = std::make_shared<LiveExchange>(shared_from_this(), std::move(request));
  exchange_ = exchange;
  watch_for_close(exchange);
  state_->callbacks.handle(exchange);
}

// While an answer is computed, nothing is read. When the client disconnects, the socket becomes readable, without any bytes.
void Connection::watch_for_close(const std::shared_ptr<LiveExchange>& exchange) {
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this(), weak = std::weak_ptr(exchange)](ErrorCode error) {
    const std::shared_ptr<LiveExchange> watched = weak.lock();
    if (error || !watched || watched != self->exchange_.lock()) return;
    ErrorCode failed;
    if (self->socket_.available(failed) > 0 && !failed) return;  // the next request: no longer watched
    watched->cancel();
  });
}

void Connection::answer(Response response, bool streamed) {
  const int64_t others = state_->answers, bytes = std::ssize(response.body);  // an answer may be large if it is the only one
  if (!streamed && others > 0 && others + bytes > state_->options.max_answers) response = too_much_unsent();
  send_answer(response, streamed);
}

void Connection::send_answer(const Response& response, bool streamed) {
  chunked_ = streamed && version_ >= 11;
  keep_alive_ = keep_alive_ && !state_->stopping && (!streamed || chunked_);
  status_ = response.status;
  const Framing framing = !streamed ? Framing::whole : chunked_ ? Framing::chunks : Framing::until_close;
  send(answer_bytes(response, {.framing = framing, .version = version_, .keep_alive = keep_alive_, .head = is_head()}));
  if (!streamed) finish();
}

void Connection::piece(const std::string& data) {
  count_unsent(-std::ssize(data));  // send() counts it with its framing
  if (!data.empty() && !is_head()) send(chunked_ ? chunk_bytes(data) : data);
}

void Connection::end_stream() {
  if (chunked_ && !is_head()) send(chunk_bytes(""));
  finish();
}

void Connection::send(std::string bytes) {
  sent_bytes_ += std::ssize(bytes);
  queue_.push_back(std::move(bytes));
  count_unsent(std::ssize(queue_.back()));
  if (queue_.size() == 1) write_next();
}

void Connection::write_next() {
  expect_within(state_->options.write_seconds);
  const net::const_buffer part = net::buffer(net::buffer(queue_.front()) + sent_of_front_, kTimedBytes);
  net::async_write(socket_, part, [self = shared_from_this()](ErrorCode error, size_t bytes) {
    if (error) {
      self->observe(false);
      return self->close();
    }
    self->expect_at_any_time();
    self->unsent_ -= static_cast<int64_t>(bytes);
    self->sent_of_front_ += bytes;
    if (self->sent_of_front_ < self->queue_.front().size()) return self->write_next();
    self->sent_of_front_ = 0;
    self->state_->answers -= std::ssize(self->queue_.front());
    self->queue_.pop_front();
    if (!self->queue_.empty()) return self->write_next();
    if (self->finished_) self->next();
  });
}

void Connection::finish() {
  finished_ = true;  // as soon as all of it is sent
  if (queue_.empty()) next();
}

void Connection::next() {
  observe(true);
  exchange_.reset();
  finished_ = false;
  sent_bytes_ = 0;
  if (keep_alive_ && !state_->stopping) return wait_for_request();
  linger(0);
}

// Closing a socket with unread input resets the connection, and the client may lose the answer: reads some of it first.
void Connection::linger(size_t dropped) {
  ErrorCode ignored;
  if (dropped == 0) {
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    expect_within(2);
  }
  buffer_.clear();
  socket_.async_read_some(buffer_.prepare(kReadBytes), [self = shared_from_this(), dropped](ErrorCode error, size_t bytes) {
    if (error || dropped + bytes > (size_t{16} << 20)) return self->close();
    self->linger(dropped + bytes);
  });
}

void Connection::observe(bool complete) {
  if (observed_ || !state_->callbacks.observe) return;
  observed_ = true;
  state_->callbacks.observe({request_, status_, sent_bytes_, std::chrono::duration<double>(Clock::now() - begin_).count(), complete});
}

void start_connection(const std::shared_ptr<HttpState>& state, tcp::socket socket) {
  std::make_shared<Connection>(state, std::move(socket))->start();
}
void stop_if_idle(Connection& connection) { connection.stop_if_idle(); }
void close_now(Connection& connection) { connection.close(); }

}  // namespace heed::serve
