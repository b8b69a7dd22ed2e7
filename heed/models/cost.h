// The cost of a call and of a training step: arithmetic, bytes moved and memory per module, counted in a dry run of the model's code. No
// values are computed, so a model may be larger than the machine's memory. docs/cost.md says what is counted.
#pragma once

#include <string>
#include <vector>

#include "heed/core/api.h"
#include "heed/models/architecture.h"

namespace HEED_API heed {

// The input size of one call.
struct InputSize {
  int64_t batch = 1;
  int64_t tokens = 0;  // per sequence, of the source for translation; 0: those of an image, or 128, or the model's maximum
  int64_t target = 0;  // target tokens for translation; 0: as many as source tokens
  int64_t labels = 0;  // masked tokens per sequence for masked language models; 0: 15% of the tokens; -1: none
};

// A module with its own parameters, a parameter outside of modules, or work without parameters: "(attend)", "(tied)".
struct ModelPart {
  std::string name = {};
  std::vector<Parameter> parameters = {};
  int64_t count = 0;             // numbers in its parameters
  int64_t bytes = 0;             // of its parameters in the file
  int64_t multiply_adds = 0;     // of matrix products
  int64_t activation_bytes = 0;  // of its output
  int64_t moved_bytes = 0;       // inputs and weights read once, outputs written once
  // Of a training step, forward and backward, without what the loss does not need (ForwardOptions::loss_only).
  int64_t training_multiply_adds = 0, training_moved_bytes = 0;

  void add(const ModelPart& other);  // adds the counts
};

// The cost of one call of a model with an input of that size.
struct ModelCost {
  InputSize size = {};
  std::vector<ModelPart> parts = {};  // in the order in which the model is built
  ModelPart total = {};               // without name and parameters
  int64_t learned = 0;                // trainable numbers
  int64_t cache_bytes = 0;            // key-value cache of one token in all layers; 0: it does not generate text
  int64_t memory_bytes = 0;           // cached keys and values of one source token of an encoder-decoder
  int64_t step_multiply_adds = 0;     // of the last token of a text, with the cache
};

// Fills in the zeros of a size. An error if there are more tokens than the model has positions.
InputSize resolve_input_size(const Model& model, InputSize size);
ModelCost cost_of(const Model& model, InputSize size = {});

bool has_loss(const Model& model);  // whether it takes labels
// Black images, sequences of token 0, and labels if requested. size: without zeros
TensorMap example_inputs(const Model& model, const InputSize& size, bool labels);

enum class Purpose {  // what a model runs for
  inference,          // all outputs, no autograd
  training,           // forward and backward of the loss; leaves gradients in the parameters
};
void run_example(const Model& model, const InputSize& size, Purpose purpose);  // on example_inputs()

// Runs a count and reports overflow as an error in config.json.
template <class Count>
auto within_limits(const Count& count) {
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

}  // namespace heed
