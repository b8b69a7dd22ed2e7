// One client: reads a request within limits of size and time, hands it on, sends the answer, and so on until the client goes.
#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <deque>
#include <optional>

#include "heed/serve/http_message.h"
#include "heed/serve/http_state.h"
#include "heed/serve/request_target.h"

namespace heed::serve {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;
using net::ip::tcp;
using Clock = std::chrono::steady_clock;
using ErrorCode = beast::error_code;

std::chrono::milliseconds milliseconds(double seconds) { return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3)); }

}  // namespace

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<HttpState> state, tcp::socket socket) : state_(std::move(state)), stream_(std::move(socket)) {
    state_->connections.insert(this);
    ++state_->connection_count;
    ErrorCode ignored;
    peer_ = stream_.socket().remote_endpoint(ignored).address().to_string();
  }
  ~Connection() {
    state_->connections.erase(this);
    --state_->connection_count;
  }

  void start() {
    if (std::ssize(state_->connections) > state_->options.max_connections)
      return refuse(503, "there are " + std::to_string(state_->options.max_connections) + " connections, expected fewer: try again later");
    wait_for_request();
  }

  void stop_if_idle() {
    if (!busy_ && buffer_.size() == 0) close();
  }

  void close() {
    ErrorCode ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
    cancel_exchange();
  }

 private:
  class LiveExchange;

  void wait_for_request() {
    busy_ = false;
    if (state_->stopping) return close();
    if (buffer_.size() > 0) return read_header();
    stream_.expires_after(milliseconds(state_->options.idle_seconds));
    stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](ErrorCode error, size_t bytes) {
      if (error) return self->close();
      self->buffer_.commit(bytes);
      self->read_header();
    });
  }

  void read_header() {
    busy_ = true;
    begin_ = Clock::now();
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(state_->options.max_header));
    parser_->body_limit(static_cast<uint64_t>(state_->options.max_body));
    stream_.expires_after(milliseconds(state_->options.header_seconds));
    http::async_read_header(stream_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, size_t) {
      if (error) return self->unreadable(error);
      if (beast::iequals(self->parser_->get()[http::field::expect], "100-continue")) return self->allow_body();
      self->read_body();
    });
  }

  void allow_body() {
    net::async_write(stream_, net::buffer("HTTP/1.1 100 Continue\r\n\r\n", 25), [self = shared_from_this()](ErrorCode error, size_t) {
      if (error) return self->close();
      self->read_body();
    });
  }

  void read_body() {
    stream_.expires_after(milliseconds(state_->options.body_seconds));
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, size_t) {
      if (error) return self->unreadable(error);
      self->handle();
    });
  }

  void unreadable(ErrorCode error) {
    const auto [status, message] = explain(error, state_->options);
    status == 0 ? close() : refuse(status, message);
  }

  // An answer without a request.
  void refuse(int status, const std::string& message) {
    keep_alive_ = false;
    begin_ = Clock::now();
    request_ = Request{.method = "-", .path = "-", .peer = peer_};
    answer({.status = status, .body = state_->callbacks.error(status, message), .headers = {{"Retry-After", "1"}}}, false);
  }

  void handle();
  void watch_for_close(const std::shared_ptr<LiveExchange>& exchange);
  void cancel_exchange();

  // A whole answer, or with `streamed` only its head.
  void answer(Response response, bool streamed) {
    chunked_ = streamed && version_ >= 11;
    keep_alive_ = keep_alive_ && !state_->stopping && (!streamed || chunked_);
    status_ = response.status;
    const Framing framing = !streamed ? Framing::whole : chunked_ ? Framing::chunks : Framing::until_close;
    send(answer_bytes(response, {.framing = framing, .version = version_, .keep_alive = keep_alive_, .head = request_.method == "HEAD"}));
    if (!streamed) finish();
  }

  void piece(const std::string& data) {
    if (!data.empty()) send(chunked_ ? chunk_bytes(data) : data);
  }

  void end_stream() {
    if (chunked_) send(chunk_bytes(""));
    finish();
  }

  void send(std::string bytes) {
    sent_bytes_ += std::ssize(bytes);
    unsent_ += std::ssize(bytes);
    queue_.push_back(std::move(bytes));
    if (queue_.size() == 1) write_next();
  }

  void write_next() {
    stream_.expires_after(milliseconds(state_->options.write_seconds));
    net::async_write(stream_, net::buffer(queue_.front()), [self = shared_from_this()](ErrorCode error, size_t) {
      if (error) {
        self->observe(false);
        return self->close();
      }
      self->unsent_ -= std::ssize(self->queue_.front());
      self->queue_.pop_front();
      if (!self->queue_.empty()) return self->write_next();
      if (self->finished_) self->next();
    });
  }

  void finish() {
    finished_ = true;  // as soon as all of it is sent
    if (queue_.empty()) next();
  }

  void next() {
    observe(true);
    exchange_.reset();
    finished_ = false;
    sent_bytes_ = 0;
    if (keep_alive_ && !state_->stopping) return wait_for_request();
    linger(0);
  }

  // Closing a socket with unread input would take the answer away from the client: reads some of it first.
  void linger(size_t dropped) {
    busy_ = false;
    ErrorCode ignored;
    if (dropped == 0) stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    buffer_.clear();
    stream_.expires_after(std::chrono::seconds(1));
    stream_.async_read_some(buffer_.prepare(65536), [self = shared_from_this(), dropped](ErrorCode error, size_t bytes) {
      if (error || dropped + bytes > (size_t{16} << 20)) return self->close();
      self->linger(dropped + bytes);
    });
  }

  void observe(bool complete) {
    if (observed_ || !state_->callbacks.observe) return;
    observed_ = true;
    state_->callbacks.observe({request_, status_, sent_bytes_, std::chrono::duration<double>(Clock::now() - begin_).count(), complete});
  }

  std::shared_ptr<HttpState> state_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::string peer_;
  Request request_ = {};
  std::weak_ptr<LiveExchange> exchange_;
  Clock::time_point begin_ = {};
  std::deque<std::string> queue_ = {};
  std::atomic<int64_t> unsent_{0};
  int64_t sent_bytes_ = 0;
  unsigned version_ = 11;
  int status_ = 0;
  bool busy_ = false, keep_alive_ = true, chunked_ = false, finished_ = false, observed_ = false;
};

// Calls of other threads become tasks of the server's thread.
class Connection::LiveExchange : public Exchange {
 public:
  LiveExchange(std::shared_ptr<Connection> connection, Request request)
      : connection_(std::move(connection)), request_(std::move(request)) {}
  ~LiveExchange() override {
    const HttpServer::ErrorBody& error = connection_->state_->callbacks.error;
    if (state_ == State::open && error) respond({.status = 500, .body = error(500, "no answer was made")});
    if (state_ == State::streaming) end();
  }

  const Request& request() const override { return request_; }
  void reply(Response response) override {
    if (state_.exchange(State::done) == State::open) respond(std::move(response));
  }
  void begin(Response head) override {
    State expected = State::open;
    if (state_.compare_exchange_strong(expected, State::streaming))
      later([connection = connection_, response = std::move(head)]() mutable { connection->answer(std::move(response), true); });
  }
  bool write(std::string data) override {
    if (cancelled() || state_ != State::streaming) return false;
    if (connection_->unsent_ > connection_->state_->options.max_unsent) {
      cancelled_ = true;
      later([connection = connection_] { connection->close(); });
      return false;
    }
    later([connection = connection_, bytes = std::move(data)] { connection->piece(bytes); });
    return true;
  }
  void end() override {
    State expected = State::streaming;
    if (state_.compare_exchange_strong(expected, State::done)) later([connection = connection_] { connection->end_stream(); });
  }
  bool cancelled() const override { return cancelled_; }
  void cancel() { cancelled_ = true; }

 private:
  enum class State { open, streaming, done };

  template <class Task>
  void later(Task task) {
    net::post(connection_->state_->io, std::move(task));
  }
  void respond(Response response) {
    later([connection = connection_, answer = std::move(response)]() mutable { connection->answer(std::move(answer), false); });
  }

  std::shared_ptr<Connection> connection_;
  Request request_;
  std::atomic<State> state_{State::open};
  std::atomic<bool> cancelled_{false};
};

void Connection::handle() {
  stream_.expires_never();
  auto& message = parser_->get();
  version_ = message.version();
  keep_alive_ = message.keep_alive();
  observed_ = false;
  Request request = request_in(message);
  request.peer = peer_;
  const bool readable = read_target({message.target().data(), message.target().size()}, request);
  request_ = Request{.method = request.method, .path = request.path, .headers = request.headers, .peer = peer_};
  if (!readable) return answer({.status = 400, .body = state_->callbacks.error(400, "the path of the request is not valid")}, false);
  const auto exchange = std::make_shared<LiveExchange>(shared_from_this(), std::move(request));
  exchange_ = exchange;
  watch_for_close(exchange);
  state_->callbacks.handle(exchange);
}

// While an answer is computed nothing is read; a client that goes makes the socket readable without any bytes.
void Connection::watch_for_close(const std::shared_ptr<LiveExchange>& exchange) {
  stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this(), weak = std::weak_ptr(exchange)](ErrorCode error) {
    const std::shared_ptr<LiveExchange> watched = weak.lock();
    if (error || !watched || watched != self->exchange_.lock()) return;
    ErrorCode failed;
    if (self->stream_.socket().available(failed) > 0 && !failed) return;  // the next request: no longer watched
    watched->cancel();
  });
}

void Connection::cancel_exchange() {
  if (const auto exchange = exchange_.lock()) exchange->cancel();
}

void start_connection(const std::shared_ptr<HttpState>& state, tcp::socket socket) {
  std::make_shared<Connection>(state, std::move(socket))->start();
}
void stop_if_idle(Connection& connection) { connection.stop_if_idle(); }
void close_now(Connection& connection) { connection.close(); }

}  // namespace heed::serve
