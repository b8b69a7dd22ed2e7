// What /v1/completions and /v1/chat/completions share: reading the options of a request, generating, and the answer whole or streamed.
#pragma once

#include "heed/io/json_reader.h"
#include "heed/serve/app.h"

namespace heed::serve {

// The finished or growing text of a choice.
struct ChoiceText {
  std::string text = {}, finish = {};
  std::vector<GeneratedToken> tokens = {};  // kept if the request has top_logprobs
};

// How an endpoint writes its answers.
struct AnswerFormat {
  std::string prefix, object, chunk_object;                                                // of the id; "text_completion"
  std::function<Json(int64_t index, const ChoiceText& choice)> choice = {};                // a whole choice
  std::function<Json(int64_t index, const GeneratedToken& token, bool first)> chunk = {};  // what a token adds to a choice
};

// From the fields of a body, without prompt and callbacks. default_tokens: max_tokens if it is not given; 0: as many as fit
GenerationRequest read_generation(const Call& call, const JsonReader& body, ModelHost& host, int64_t default_tokens);

// Checks that the prompts fit the model, generates and answers.
void answer_texts(const Call& call, const JsonReader& body, const std::shared_ptr<ModelHost>& host, const GenerationRequest& options,
                  const std::vector<std::vector<int64_t>>& prompts, AnswerFormat format);

std::vector<int64_t> ids_in(const Encoding& encoding);
int64_t new_seed();

}  // namespace heed::serve
