// Runs the text generation example of docs/models.md and checks that the document shows it.
#include <gtest/gtest.h>

#include "tests/structure/source.h"

// example begins
#include <heed/models/beam.h>

// Greedy decoding, three samples, and the best of four beams. inputs: input_ids (B, N) i64
heed::Tensors generate_all(const heed::Model& model, const heed::TensorMap& inputs) {
  auto options = heed::generation_options(model);  // generation_config.json, or config.json
  options.max_new_tokens = 12;
  auto greedy = heed::generate(model, inputs, options);  // (B, L) including the prompt
  options.sample = true;
  options.sampling = {.temperature = 0.8f, .top_p = 0.95f, .seed = 7};
  options.count = 3;
  auto samples = heed::generate(model, inputs, options);  // (3 B, L)
  options.sample = false;
  options.beams = 4;
  options.count = 1;
  auto beams = heed::beam_search(model, inputs, options);  // beams.tokens (B, L), beams.scores
  return {greedy, samples, beams.tokens};
}
// example ends

namespace heed::test {
namespace {

TEST(ModelsDocument, shows_the_generation_example) {
  EXPECT_NE(read_source("docs/models.md").find(shown_example("tests/models/generate_example_test.cc")), std::string::npos);
  const Model model = load(std::string(HEED_SOURCE_DIR) + "/tests/fixtures/gpt2-lm");
  const Tensors found = generate_all(model, {{"input_ids", Tensor::from(std::vector<int64_t>{5, 6, 7, 8, 9, 10}, {2, 3}, kCpu)}});
  EXPECT_EQ(found[0].shape(), (Shape{2, 15}));
  EXPECT_EQ(found[1].size(0), 6);
  EXPECT_EQ(found[2].size(0), 2);
}

}  // namespace
}  // namespace heed::test
