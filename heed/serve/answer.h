// Answers: JSON, errors in the form of OpenAI's interface, compression and ETags.
#pragma once

#include "heed/core/check.h"
#include "heed/io/json.h"
#include "heed/serve/http.h"

namespace heed::serve {

// An error with its HTTP status. param: the field of the request that is wrong
class HttpError : public Error {
 public:
  HttpError(int status, const std::string& message, std::string param = {}) : Error(message), status_(status), param_(std::move(param)) {}
  int status() const { return status_; }
  const std::string& param() const { return param_; }

 private:
  int status_;
  std::string param_;
};

template <class... Parts>
void require(bool ok, int status, const Parts&... parts) {
  if (ok) return;
  std::ostringstream text;
  (text << ... << parts);
  throw HttpError(status, text.str());
}

std::string dump(const Json& json);  // one line; invalid UTF-8 is replaced
Json error_json(int status, const std::string& message, const std::string& param = {});
Response json_response(const Json& json, int status = 200);
Response error_response(const std::exception& error);  // its status follows from its class
Response error_response(int status, const std::string& message);

// Adds an ETag to answers of GET, answers 304 if the client has it, and compresses text if the client reads gzip and it pays off.
void finish_response(const Request& request, Response& response);
bool accepts_gzip(const Request& request);
std::string gzip(const std::string& text);
std::string etag_of(const std::string& body);

// A server-sent event. name: may be empty
std::string sse_event(const std::string& data, const std::string& name = {}, const std::string& id = {});
Response sse_head();

}  // namespace heed::serve
