// What a file is by its first bytes, for messages about files that are not text.
#pragma once

#include <string>
#include <string_view>

namespace heed {

// "a PNG image", "UTF-16 text (little-endian)", "gzip data" and the like; empty: nothing that is known here, UTF-8 text for example.
std::string kind_of_bytes(std::string_view first);
// The same of a file's first bytes; empty also where it cannot be read.
std::string kind_of_file(const std::string& path);

// What to do about a kind where UTF-8 text is expected: "; convert it first: iconv ..." or nothing.
std::string advice_for(const std::string& kind, const std::string& path);

}  // namespace heed
