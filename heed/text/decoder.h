// Decoders turn tokens back into text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/io/json_reader.h"

namespace heed::text {

using Decoder = std::function<void(std::vector<std::string>& tokens)>;  // the resulting strings are concatenated

// The decoder of a tokenizer.json: one or a sequence. Unknown types are a FileError that names them.
Decoder make_decoder(const JsonReader& json);

Decoder wordpiece_decoder(const std::string& prefix, bool cleanup);
Decoder byte_level_decoder();
// As transformers' CLIPTokenizer: after `inner`, the end-of-word suffix becomes a space and both ends are stripped.
Decoder clip_decoder(Decoder inner, const std::string& word_suffix);
Decoder spaced_decoder();  // joins tokens with spaces: the default without a decoder

}  // namespace heed::text
