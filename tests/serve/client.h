// The program as a server, and a small blocking client.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "heed/core/parse.h"
#include "heed/io/json.h"
#include "tests/cli/child.h"
#include "tests/io/files.h"

namespace heed::test {

struct Answer {
  int status = 0;  // 0: the connection ended before
  std::map<std::string, std::string> headers = {};
  std::string body = {};
  std::string problem = {};  // why the status is 0

  Json json() const { return Json::parse(body, nullptr, false); }
  std::string error() const {
    const Json found = json();
    return found.is_object() && found.contains("error") ? found["error"].value("message", "") : "";
  }
};

// Whether it becomes true within a minute.
inline bool within_a_minute(const std::function<bool()>& ready) {
  for (int i = 0; i < 6000 && !ready(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return ready();
}

// A connection. Every read ends after a minute, even if the server keeps sending something else.
class Connection {
 public:
  explicit Connection(int port) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    const timeval limit{60, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    if (!connected_) note("connect");
  }
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool connected() const { return connected_; }
  int descriptor() const { return socket_; }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  bool send(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t more = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) return note("send");
      sent += static_cast<size_t>(more);
    }
    return true;
  }
  // Receives more bytes; false at the end.
  bool receive() {
    char part[65536];
    const ssize_t bytes = ::recv(socket_, part, sizeof part, 0);
    closed_ = bytes == 0 || (bytes < 0 && errno == ECONNRESET);
    if (bytes <= 0) return note(bytes == 0 ? "closed" : "recv");
    buffer_.append(part, static_cast<size_t>(bytes));
    return true;
  }
  // Up to and including the text; empty if it does not arrive.
  std::string until(const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (buffer_.find(text) == std::string::npos)
      if (std::chrono::steady_clock::now() > deadline || !receive()) return "";
    const size_t end = buffer_.find(text) + text.size();
    std::string out = buffer_.substr(0, end);
    buffer_.erase(0, end);
    return out;
  }
  std::string exactly(size_t bytes) {
    while (buffer_.size() < bytes)
      if (!receive()) break;
    std::string out = buffer_.substr(0, bytes);
    buffer_.erase(0, out.size());
    return out;
  }
  bool at_end() { return buffer_.empty() && !receive() && closed_; }  // the server closes it, without sending more

  Answer head() {
    Answer out;
    const std::string head = until("\r\n\r\n");
    if (head.size() < 12) return {.problem = problem_};
    out.status = parse_number<int>(head.substr(9, 3)).value_or(0);
    for (size_t at = head.find("\r\n") + 2; at + 2 < head.size();) {
      const size_t end = head.find("\r\n", at), colon = head.find(": ", at);
      std::string name = head.substr(at, colon - at);
      for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      out.headers[name] = head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    return out;
  }
  Answer answer(bool has_body = true) {
    Answer out = head();
    if (!has_body || out.status == 304 || out.status == 204) return out;
    if (out.headers.contains("content-length")) {
      out.body = exactly(parse_number<size_t>(out.headers["content-length"]).value_or(0));
    } else if (out.headers["transfer-encoding"] == "chunked") {
      for (std::string chunk = next_chunk(); !chunk.empty(); chunk = next_chunk()) out.body += chunk;
    }
    return out;
  }
  std::string next_chunk() {  // empty: the last one, or the connection ended
    const std::string size = until("\r\n");
    if (size.empty()) return "";
    const std::string data = exactly(std::stoul(size, nullptr, 16));
    exactly(2);
    return data;
  }

 private:
  // Keeps the first failure, with its time after the connection was opened. -> false
  bool note(const char* what) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    if (problem_.empty()) problem_ = std::string(what) + " after " + std::to_string(seconds) + " s: " + std::strerror(errno);
    return false;
  }

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  int socket_ = -1;
  bool connected_ = false, closed_ = false;  // closed: by the server
  std::string buffer_, problem_;
};

inline std::string request_text(const std::string& method, const std::string& target, const std::string& body = "",
                                const std::string& headers = "") {
  std::string out = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers;
  if (!body.empty() || method == "POST") out += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  return out + "\r\n" + body;
}

class Server {
 public:
  explicit Server(std::vector<std::string> arguments) : child_(with_port(std::move(arguments)), folder_ / "output") {
    for (int i = 0; i < 6000 && port_ == 0 && !child_.ended(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const std::string text = output();
      const size_t at = text.find("http://"), colon = text.find(':', at + 7), end = text.find('\n', at);
      if (at != std::string::npos && end != std::string::npos)
        port_ = parse_number<int>(text.substr(colon + 1, end - colon - 1)).value_or(0);
    }
    EXPECT_GT(port_, 0) << output();
  }

  int port() const { return port_; }
  Child& child() { return child_; }
  std::string output() const { return get(folder_ / "output"); }

  Answer send(const std::string& text, bool has_body = true) const {
    Connection connection(port_);
    connection.send(text);
    return connection.answer(has_body);
  }
  Answer get_path(const std::string& target, const std::string& headers = "") const {
    return send(request_text("GET", target, "", headers));
  }
  Answer post(const std::string& target, const Json& body) const { return send(request_text("POST", target, body.dump())); }
  int64_t metric(const std::string& name) const {
    const std::string text = get_path("/metrics").body, line = "\nheed_" + name + " ";
    const size_t at = text.find(line) + line.size();
    return parse_number<int64_t>(text.substr(at, text.find('\n', at) - at)).value_or(-1);
  }

 private:
  static std::vector<std::string> with_port(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"serve", "--port", "0"});
    return arguments;
  }

  Folder folder_;
  Child child_;
  int port_ = 0;
};

}  // namespace heed::test
