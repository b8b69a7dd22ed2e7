// Files that are compiled in: cmake/embed.cmake.
#pragma once

#include <string>

namespace heed::serve {

extern const unsigned char kOpenApi[], kPage[];
extern const unsigned long kOpenApiSize, kPageSize;

inline std::string openapi_file() { return {reinterpret_cast<const char*>(kOpenApi), kOpenApiSize}; }
inline std::string page_file() { return {reinterpret_cast<const char*>(kPage), kPageSize}; }  // compressed; empty: it was not built

}  // namespace heed::serve
