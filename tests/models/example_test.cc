// Runs the example of the README and checks that the README shows it.
#include <gtest/gtest.h>

#include "tests/structure/source.h"

// example begins
#include <heed/models/generate.h>

// Classifies images, and continues texts. pixels: (B, 3, height, width), tokens: (B, N) i64
heed::Tensor classes(const std::string& folder, const heed::Tensor& pixels) {
  auto model = heed::load(folder);
  auto out = model({{"pixel_values", pixels}});
  return heed::argmax(out["logits"]);
}

heed::Tensor continue_text(const std::string& folder, const heed::Tensor& tokens) {
  auto model = heed::load(folder);
  auto options = heed::generation_options(model);
  options.max_length = 20;
  return heed::generate(model, {{"input_ids", tokens}}, options);
}
// example ends

namespace heed::test {
namespace {

TEST(ModelsDocument, the_readme_shows_what_runs) {
  EXPECT_NE(read_source("README.md").find(shown_example("tests/models/example_test.cc")), std::string::npos);
  const Path fixtures = Path(HEED_SOURCE_DIR) / "tests/fixtures";
  EXPECT_EQ(classes(fixtures / "vit-classify", Tensor::zeros({2, 3, 32, 32}, kCpu)).shape(), (Shape{2}));
  EXPECT_EQ(continue_text(fixtures / "gpt2-lm", Tensor::from(std::vector<int64_t>{5, 6, 7}, {1, 3}, kCpu)).shape(), (Shape{1, 20}));
}

}  // namespace
}  // namespace heed::test
