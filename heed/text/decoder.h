// Decoders put tokens together again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/text/json_part.h"

namespace heed::text {

using Decoder = std::function<void(std::vector<std::string>& tokens)>;  // what it leaves is joined without spaces

// The decoder of a tokenizer.json: one or a sequence. Kinds that heed does not know are refused by name.
Decoder make_decoder(const JsonPart& json);

Decoder wordpiece_decoder(const std::string& prefix, bool cleanup);
Decoder byte_level_decoder();
// What transformers' CLIPTokenizer makes of `inner`: the mark at the end of words becomes a space, and the ends are stripped.
Decoder clip_decoder(Decoder inner, const std::string& word_suffix);
Decoder spaced_decoder();  // a space between tokens: what a tokenizer without a decoder does

}  // namespace heed::text
