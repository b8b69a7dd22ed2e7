#include "heed/serve/http_message.h"

#include <boost/asio/error.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/status.hpp>
#include <cctype>
#include <sstream>

namespace heed::serve {

namespace http = boost::beast::http;

Request request_in(http::request<http::string_body>& message) {
  Request out{.method = std::string(message.method_string()), .body = std::move(message.body())};
  for (const auto& field : message) {
    std::string name(field.name_string());
    for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    out.headers.emplace(std::move(name), std::string(field.value()));
  }
  return out;
}

std::pair<int, std::string> explain(boost::system::error_code error, const HttpOptions& options) {
  namespace asio_error = boost::asio::error;
  if (error == http::error::end_of_stream || error == asio_error::connection_reset || error == asio_error::eof ||
      error == asio_error::operation_aborted)
    return {0, ""};
  if (error == http::error::body_limit) return {413, "the body is larger than " + std::to_string(options.max_body) + " bytes"};
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return {431, "the headers are larger than " + std::to_string(options.max_header) + " bytes"};
  if (error == boost::beast::error::timeout) return {408, "the request did not arrive in time"};
  return {400, "not an HTTP request: " + error.message()};
}

std::string answer_bytes(const Response& response, const AnswerForm& form) {
  std::ostringstream out;
  out << "HTTP/1." << (form.version >= 11 ? 1 : 0) << ' ' << response.status << ' '
      << http::obsolete_reason(static_cast<http::status>(response.status)) << "\r\nServer: heed\r\n";
  if (!response.type.empty()) out << "Content-Type: " << response.type << "\r\n";
  for (const auto& [name, value] : response.headers) out << name << ": " << value << "\r\n";
  const bool empty = response.status == 304 || response.status == 204;
  if (form.framing == Framing::chunks) out << "Transfer-Encoding: chunked\r\n";
  if (form.framing == Framing::whole && !empty) out << "Content-Length: " << response.body.size() << "\r\n";
  out << "Connection: " << (form.keep_alive ? "keep-alive" : "close") << "\r\n\r\n";
  if (form.framing == Framing::whole && !empty && !form.head) out << response.body;
  return out.str();
}

std::string chunk_bytes(const std::string& data) {
  std::ostringstream out;
  out << std::hex << data.size() << "\r\n" << data << "\r\n";
  return out.str();
}

}  // namespace heed::serve
