// An input of heed inspect: what the model makes of a picture, a text or a translation, and where its heads look meanwhile.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heed/io/drawing.h"
#include "heed/models/classify.h"
#include "heed/models/cost.h"
#include "heed/models/inspect.h"

namespace heed::cli {

struct LookOptions {
  std::string input = {};                  // a file or a text, as the model reads
  std::optional<std::string> pair = {};    // a second text
  std::optional<std::string> target = {};  // of a translation; none: the model writes one
  bool ids = false;                        // texts are numbers of tokens
  MapChoice choice = {};
};

// What a model says about its input, or about a token of it: the most probable labels, words or values.
struct LookAnswer {
  std::string about = {};  // "class", "[MASK]", "next token", or the token that is labelled
  std::vector<Label> labels = {};
  bool probabilities = true;  // false: values of a regression
};

struct Look {
  InputKind kind = InputKind::text;
  std::string model = {}, architecture = {}, input = {};
  std::vector<LookAnswer> answers = {};  // none: the model has no head that says anything
  std::string translation = {};          // of the model or of --target, as text; empty: none, or there is no tokenizer
  bool own_translation = false;          // the model wrote it
  std::vector<AttentionMaps> maps = {};  // of a translation: cross, encoder, decoder
  std::vector<float> rollout = {};       // (N, N); empty: of translations

  // Of pictures.
  Picture picture = {};                      // as the model sees it
  int64_t rows = 0, columns = 0, first = 0;  // of the grid of patches; tokens before them
};

// The answers in a model's outputs. ids: of the tokens, of texts; name: of a token by its id; mask: the id of [MASK], -1: there is none
std::vector<LookAnswer> answers_in(const Model& model, const Named& outputs, std::span<const int64_t> ids,
                                   const std::function<std::string(int64_t id)>& name, int64_t mask = -1);

Look look_at(const Path& folder, const LookOptions& options);

// What a query sees of the keys that are patches. map: (N, M). query: a token, or -1: all of them on average
std::vector<float> patches_seen(const Look& look, std::span<const float> map, int64_t query);
int64_t default_query(const Look& look);  // the class token, or -1 where there is none

inline constexpr double kOverPicture = 0.6;  // how much of the colour of a weight covers the picture
inline constexpr double kLeastLine = 0.02;   // weights below it have no line in drawings

std::string text_view(const Look& look, int64_t query);  // for a terminal
Json look_json(const Look& look);
Drawing still(const Look& look, int64_t query);
std::string html_page(const Look& look);

}  // namespace heed::cli
