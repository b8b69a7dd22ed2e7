// The type of a file by its first bytes, for error messages about files that are not text.
#pragma once

#include <string>
#include <string_view>

namespace heed {

// "a PNG image", "UTF-16 text (little-endian)", "gzip data", ...; empty: unknown, e.g. UTF-8 text.
std::string kind_of_bytes(std::string_view first);
// The same for a file; empty also if it cannot be read.
std::string kind_of_file(const std::string& path);

// Advice if UTF-8 text was expected: "; convert it first: iconv ..." or empty.
std::string advice_for(const std::string& kind, const std::string& path);

}  // namespace heed
