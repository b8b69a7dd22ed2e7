// Whether bytes are well-formed UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <string_view>

namespace heed {

// The first byte at or after i that is not ASCII, or the size of the text.
size_t ascii_prefix(std::string_view text, size_t i);

// The first byte that does not belong to well-formed UTF-8, or npos. `bad`: how many bytes from there make one mistake: the
// longest beginning of a character that could have become one, so that decoders agree on the number of replacements.
size_t find_bad_utf8(std::string_view text, size_t* bad = nullptr);

}  // namespace heed
