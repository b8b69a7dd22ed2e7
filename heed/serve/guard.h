// Which requests are allowed: checks Host (DNS rebinding), Origin (other sites in the user's browser) and the token.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heed/serve/http.h"

namespace heed::serve {

struct GuardOptions {
  std::string host = "127.0.0.1";         // that the server listens on
  std::string token = {};                 // empty: none is needed
  std::vector<std::string> origins = {};  // of other sites that may send requests; "*": all
};

bool is_loopback(const std::string& host);  // a name or an address, without port

// The error for a request that is not allowed.
std::optional<Response> refused(const GuardOptions& options, const Request& request);
// The headers that let a browser read the answer in another site that is allowed.
Headers cross_origin_headers(const GuardOptions& options, const Request& request);

}  // namespace heed::serve
