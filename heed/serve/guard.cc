#include "heed/serve/guard.h"

#include <algorithm>
#include <cctype>

#include "heed/serve/answer.h"

namespace heed::serve {
namespace {

std::string lower_case(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

// "[::1]:8080" -> "::1", "LocalHost:8080" -> "localhost"; empty if it is not a host with an optional port
std::string host_name(const std::string& host) {
  const size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  if (bracket == std::string::npos) return "";
  const size_t colon = std::min(host.find(':', bracket), host.size());
  const bool port = host.find_first_not_of("0123456789", std::min(colon + 1, host.size())) == std::string::npos;
  if (!port || (bracket > 0 && colon != bracket + 1)) return "";
  return lower_case(bracket > 0 ? host.substr(1, bracket - 1) : host.substr(0, colon));
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
  const std::string host = host_name(request.header("host"));
  if (options.token.empty() && !is_loopback(host) && host != lower_case(options.host))
    return error_response(403, "Host: found " + in_quotes(request.header("host"), 60) + ", expected localhost or " + options.host);
  const std::string origin = request.header("origin");
  if (!origin.empty() && !is_own_origin(request) && !is_listed_origin(options, origin))
    return error_response(403, "Origin: " + in_quotes(origin, 60) + " may not send requests; heed serve --allow-origin allows it");
  if (options.token.empty() || is_open(request) || request.method == "OPTIONS") return std::nullopt;
  const std::string given = request.header("authorization");
  if (given.empty()) return error_response(401, "Authorization: found none, expected Bearer and the token of the server");
  constexpr size_t scheme = std::string_view("bearer ").size();
  if (lower_case(given.substr(0, scheme)) != "bearer " || !equal_secrets(options.token, given.substr(scheme)))
    return error_response(401, "Authorization: this is not the token of the server");
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
