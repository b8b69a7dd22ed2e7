// What the parts of a model are and what one call costs, told from names, shapes and config.json. Nothing is computed: a model
// without values (LoadOptions::shapes_only) will do. docs/cost.md says what is counted.
#pragma once

#include <string>
#include <vector>

#include "heed/models/model.h"

namespace heed {

// Of one call. 0: what the model's pictures have, or 128 tokens where it has as many positions.
struct InputSize {
  int64_t batch = 1;
  int64_t tokens = 0;  // of every text, or of the source of a translation
  int64_t target = 0;  // tokens of a translation; 0: as many as its source
  int64_t labels = 0;  // hidden words of every text that a masked language model learns; 0: 15 of 100 tokens
};

// A module with parameters of its own, a parameter that belongs to none, or work without parameters: "(attend)", "(tied)".
struct ModelPart {
  std::string name = {};
  std::vector<Parameter> parameters = {};
  int64_t count = 0;             // of numbers in its parameters
  int64_t bytes = 0;             // of those in the file
  int64_t multiply_adds = 0;     // of matrix products
  int64_t activation_bytes = 0;  // of what it puts out, in f32
  int64_t moved_bytes = 0;       // inputs and weights read once, outputs written once
  // Of a step of training, forward and backward; what the loss does not need is left out, as heed does (Ask::loss_only).
  int64_t training_multiply_adds = 0, training_moved_bytes = 0;

  void add(const ModelPart& other);  // its numbers
};

struct ModelCost {
  InputSize size = {};
  std::vector<ModelPart> parts = {};  // as the model is built
  ModelPart total = {};               // without name and parameters
  int64_t learned = 0;                // numbers that training changes
  int64_t cache_bytes = 0;            // keys and values of one token in all layers of a decoder; 0: writes no text
  int64_t memory_bytes = 0;           // the same of one token of a translation's source
};

enum class InputKind { picture, text, translation };
InputKind input_kind(const Model& model);
// How many tokens a text may have; very many where config.json has positions of our own.
int64_t most_tokens(const Model& model);

// The size with what it leaves open filled in. An error where the model has no positions for so many tokens.
InputSize settled_size(const Model& model, InputSize size);
ModelCost cost_of(const Model& model, InputSize size = {});

// What a count gives. Numbers too large to be counted are the fault of config.json, or of the size that was asked for.
template <class Count>
auto counted(const Count& count) {
  try {
    return count();
  } catch (const FileError&) {
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    fail<FileError>("config.json: the model is too large: ", error.what());
  }
}

// How many of N x N pairs of tokens are seen through heed.pattern (null: all of them), and through the causal mask. columns: of
// the grid. layer: counted from 0, as patterns may alternate
int64_t seen_pairs(int64_t N, bool causal, const Json& pattern, int64_t columns, int64_t layer);

}  // namespace heed
