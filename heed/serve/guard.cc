#include "heed/serve/guard.h"

#include <algorithm>

#include "heed/serve/answer.h"

namespace heed::serve {
namespace {

// "[::1]:8080" -> "::1"
std::string without_port(const std::string& host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.rfind(':'));
}

// In the same time wherever they differ.
bool equal_secrets(const std::string& a, const std::string& b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) difference = static_cast<unsigned char>(difference | (a[i] ^ (i < b.size() ? b[i] : '\0')));
  return difference == 0;
}

bool is_own_origin(const Request& request) {
  const std::string origin = request.header("origin"), host = request.header("host");
  return origin == "http://" + host || origin == "https://" + host;
}

bool is_listed_origin(const GuardOptions& options, const std::string& origin) {
  return std::any_of(options.origins.begin(), options.origins.end(),
                     [&](const std::string& each) { return each == "*" || each == origin; });
}

// What a browser loads before it can send a token.
bool is_open(const Request& request) { return request.path == "/" || request.path == "/health" || request.path == "/openapi.json"; }

}  // namespace

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "127.0.0.1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
}

std::optional<Response> refused(const GuardOptions& options, const Request& request) {
  const std::string host = without_port(request.header("host"));
  if (options.token.empty() && !is_loopback(host) && host != options.host)
    return error_response(403, "Host: found " + in_quotes(host, 60) + ", expected localhost or " + options.host);
  const std::string origin = request.header("origin");
  if (!origin.empty() && !is_own_origin(request) && !is_listed_origin(options, origin))
    return error_response(403, "Origin: " + in_quotes(origin, 60) + " may not send requests; heed serve --allow-origin allows it");
  if (options.token.empty() || is_open(request) || request.method == "OPTIONS") return std::nullopt;
  const std::string given = request.header("authorization");
  if (given.empty()) return error_response(401, "Authorization: found none, expected Bearer and the token of the server");
  if (!equal_secrets("Bearer " + options.token, given)) return error_response(401, "Authorization: this is not the token of the server");
  return std::nullopt;
}

Headers cross_origin_headers(const GuardOptions& options, const Request& request) {
  const std::string origin = request.header("origin");
  if (origin.empty() || is_own_origin(request) || !is_listed_origin(options, origin)) return {};
  return {{"Access-Control-Allow-Origin", origin},
          {"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
          {"Access-Control-Allow-Headers", "Authorization, Content-Type"},
          {"Access-Control-Max-Age", "600"},
          {"Vary", "Origin"}};
}

}  // namespace heed::serve
