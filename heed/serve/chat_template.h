// The chat template of a model: chat_template in tokenizer_config.json, or the file chat_template.jinja.
#pragma once

#include "heed/io/json.h"

namespace heed::serve {

bool has_chat_template(const Path& folder);
// messages: [{"role": ..., "content": text}] -> the prompt of the next answer. Errors are UsageErrors or FileErrors.
std::string chat_prompt(const Path& folder, const Json& messages);

}  // namespace heed::serve
