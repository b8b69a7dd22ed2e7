// The example of the README, run; and the README held against it.
#include <gtest/gtest.h>

#include "tests/house/source.h"

// example begins
#include <heed/models/generate.h>

// The class of every picture, and a sentence that goes on. pixels: (B, 3, height, width), words: (B, N) i64
heed::Tensor classes(const std::string& folder, const heed::Tensor& pixels) {
  auto model = heed::load(folder);
  auto out = model({{"pixel_values", pixels}});
  return heed::argmax(out["logits"]);
}

heed::Tensor go_on(const std::string& folder, const heed::Tensor& words) {
  auto model = heed::load(folder);
  auto options = heed::generation_options(model);
  options.max_length = 20;
  return heed::generate(model, {{"input_ids", words}}, options);
}
// example ends

namespace heed::test {
namespace {

TEST(ModelsDocument, the_readme_shows_what_runs) {
  EXPECT_NE(read_source("README.md").find(shown_example("tests/models/example_test.cc")), std::string::npos);
  const Path fixtures = Path(HEED_SOURCE_DIR) / "tests/fixtures";
  EXPECT_EQ(classes(fixtures / "vit-classify", Tensor::zeros({2, 3, 32, 32})).shape(), (Shape{2}));
  EXPECT_EQ(go_on(fixtures / "gpt2-lm", Tensor::from(std::vector<int64_t>{5, 6, 7}, {1, 3})).shape(), (Shape{1, 20}));
}

}  // namespace
}  // namespace heed::test
