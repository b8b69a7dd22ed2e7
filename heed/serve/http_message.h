// Requests and answers as Beast reads them and as bytes.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

#include "heed/serve/http.h"

namespace heed::serve {

// Everything but the target and the peer. Takes the body out of the message.
Request request_in(boost::beast::http::request<boost::beast::http::string_body>& message);

// The status and the message for a request that could not be read; 0: the client has disconnected.
std::pair<int, std::string> explain(boost::system::error_code error, const HttpOptions& options);

enum class Framing { whole, chunks, until_close };  // what marks the end of the body
struct AnswerForm {
  Framing framing = Framing::whole;
  unsigned version = 11;
  bool keep_alive = true;
  bool head = false;  // the request was HEAD: no body
};
std::string answer_bytes(const Response& response, const AnswerForm& form);  // with the body if it is sent whole
std::string chunk_bytes(const std::string& data);                            // empty: the last one

}  // namespace heed::serve
