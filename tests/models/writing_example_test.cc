// The example of docs/models.md about writing text, run; and the document held against it.
#include <gtest/gtest.h>

#include "tests/house/source.h"

// example begins
#include <heed/models/beam.h>

// How a model goes on: greedily, three texts by chance, and the best of four beams. inputs: input_ids (B, N) i64
heed::Tensors ways(const heed::Model& model, const heed::Named& inputs) {
  auto options = heed::generation_options(model);  // generation_config.json, or else config.json
  options.max_new_tokens = 12;
  auto greedy = heed::generate(model, inputs, options);  // (B, L) with all that texts begin with
  options.sample = true;
  options.sampling = {.temperature = 0.8f, .top_p = 0.95f, .seed = 7};
  options.count = 3;
  auto by_chance = heed::generate(model, inputs, options);  // (3 B, L)
  options.sample = false;
  options.beams = 4;
  options.count = 1;
  auto beams = heed::beam_search(model, inputs, options);  // beams.tokens (B, L), beams.scores
  return {greedy, by_chance, beams.tokens};
}
// example ends

namespace heed::test {
namespace {

TEST(ModelsDocument, writing_is_shown_as_it_runs) {
  EXPECT_NE(read_source("docs/models.md").find(shown_example("tests/models/writing_example_test.cc")), std::string::npos);
  const Model model = load(std::string(HEED_SOURCE_DIR) + "/tests/fixtures/gpt2-lm");
  const Tensors found = ways(model, {{"input_ids", Tensor::from(std::vector<int64_t>{5, 6, 7, 8, 9, 10}, {2, 3})}});
  EXPECT_EQ(found[0].shape(), (Shape{2, 15}));
  EXPECT_EQ(found[1].size(0), 6);
  EXPECT_EQ(found[2].size(0), 2);
}

}  // namespace
}  // namespace heed::test
