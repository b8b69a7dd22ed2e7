// UTF-8 validation (RFC 3629).
#pragma once

#include <cstddef>
#include <string_view>

#include "heed/core/api.h"

namespace HEED_API heed {

// Index of the first non-ASCII byte at or after i, or the size of the text.
size_t ascii_prefix(std::string_view text, size_t i);

// Index of the first invalid byte, or npos. `bad`: length of the invalid sequence, the maximal valid prefix of a character, so that
// the number of replacement characters matches other decoders.
size_t find_bad_utf8(std::string_view text, size_t* bad = nullptr);

}  // namespace heed
