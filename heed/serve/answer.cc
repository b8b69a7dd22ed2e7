#include "heed/serve/answer.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <new>

#include "heed/core/parse.h"

namespace heed::serve {
namespace {

constexpr size_t kWorthCompressing = 1400;  // less fits into one packet anyway

const char* error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

bool is_text(const std::string& type) {
  return type.starts_with("text/html") || type.starts_with("text/plain") || type.starts_with("application/json");
}

}  // namespace

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json error_json(int status, const std::string& message, const std::string& param) {
  return {
      {"error", {{"message", message}, {"type", error_type(status)}, {"param", param.empty() ? Json() : Json(param)}, {"code", nullptr}}}};
}

Response json_response(const Json& json, int status) { return {.status = status, .body = dump(json)}; }

Response error_response(int status, const std::string& message) {
  Response out = json_response(error_json(status, message), status);
  if (status == 429 || status == 503) out.headers.emplace_back("Retry-After", "1");
  if (status == 401) out.headers.emplace_back("WWW-Authenticate", "Bearer");
  return out;
}

Response error_response(const std::exception& error) {
  if (const auto* http = dynamic_cast<const HttpError*>(&error)) {
    Response out = error_response(http->status(), http->what());
    if (!http->param().empty()) out.body = dump(error_json(http->status(), http->what(), http->param()));
    return out;
  }
  if (dynamic_cast<const std::bad_alloc*>(&error)) return error_response(503, "the server does not have enough memory for this request");
  if (dynamic_cast<const StoppedError*>(&error)) return error_response(499, "the client has disconnected");
  const auto* own = dynamic_cast<const Error*>(&error);
  const bool of_client = own && (own->exit_code() == 2 || own->exit_code() == 3);  // settings and values that do not parse
  return error_response(of_client ? 400 : 500, error.what());
}

// "br;q=1, gzip;q=0.5": yes; "gzip;q=0": no
bool accepts_gzip(const Request& request) {
  std::string accepted = request.header("accept-encoding");
  std::erase_if(accepted, [](char each) { return each == ' ' || each == '\t'; });
  for (char& each : accepted) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  for (const std::string& coding : split(accepted, ',')) {
    const size_t end = std::min(coding.find(';'), coding.size());
    if (coding.substr(0, end) != "gzip") continue;
    const size_t weight = coding.find("q=", end);
    return weight == std::string::npos || coding.find_first_of("123456789", weight) != std::string::npos;
  }
  return false;
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  constexpr int gzip_format = 15 + 16, quick = 1;
  check(deflateInit2(&stream, quick, Z_DEFLATED, gzip_format, 8, Z_DEFAULT_STRATEGY) == Z_OK, "gzip: zlib does not have enough memory");
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int done = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  check(done == Z_STREAM_END, "gzip: zlib failed with ", done);
  return out;
}

std::string etag_of(const std::string& body) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char each : body) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  std::ostringstream out;
  out << "W/\"" << std::hex << hash << '-' << body.size() << '"';  // weak: of the contents, compressed or not
  return out.str();
}

void finish_response(const Request& request, Response& response) {
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  const bool compressible = response.body.size() >= kWorthCompressing && is_text(response.type);
  if (compressible) response.headers.emplace_back("Vary", "Accept-Encoding");
  if ((request.method == "GET" || request.method == "HEAD") && response.status == 200) {
    const std::string etag = etag_of(response.body), known = request.header("if-none-match");
    response.headers.emplace_back("ETag", etag);
    response.headers.emplace_back("Cache-Control", "no-cache");
    if (known == "*" || known.find(etag.substr(2)) != std::string::npos) {  // the same tag, weak or not
      response.status = 304;
      response.body.clear();
      return;
    }
  }
  if (!compressible) return;
  for (const auto& [name, value] : response.headers)
    if (name == "Content-Encoding") return;
  if (!accepts_gzip(request)) return;
  response.body = gzip(response.body);
  response.headers.emplace_back("Content-Encoding", "gzip");
}

std::string sse_event(const std::string& data, const std::string& name, const std::string& id) {
  return (id.empty() ? "" : "id: " + id + "\n") + (name.empty() ? "" : "event: " + name + "\n") + "data: " + data + "\n\n";
}

Response sse_head() { return {.type = "text/event-stream", .headers = {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}}}; }

}  // namespace heed::serve
