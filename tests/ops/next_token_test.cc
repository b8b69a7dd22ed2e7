// The first and the last kernel of a decoding step.
#include "heed/ops/next_token.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/expect_error.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

WrittenTokens written_tokens(const std::vector<int64_t>& last, const std::vector<int64_t>& lengths, int64_t capacity) {
  const int64_t B = std::ssize(last);
  return {.last = Tensor::from(last, {B}, test_device()),
          .lengths = Tensor::from(lengths, {B}, test_device()),
          .all = Tensor::zeros({B, capacity}, DType::i64, test_device())};
}

TEST(NextToken, embeds_tokens_at_their_positions) {
  const NoGrad quiet;
  const Tensor table = normal_input({50, 300}, 1), positions = normal_input({9, 300}, 2), out = Tensor::empty({3, 300}, test_device());
  const WrittenTokens written = written_tokens({49, 0, -1}, {8, 3, 0}, 10);
  for (const Tensor& added : {positions, Tensor()}) {
    embed_last_tokens(table, added, written, out);
    const std::vector<float> got = out.to_vector<float>(), rows = table.to_vector<float>(), places = positions.to_vector<float>();
    for (size_t d = 0; d < 300; ++d) {
      EXPECT_EQ(got[d], rows[49 * 300 + d] + (added.defined() ? places[8 * 300 + d] : 0));
      EXPECT_EQ(got[300 + d], rows[d] + (added.defined() ? places[3 * 300 + d] : 0));
      EXPECT_TRUE(std::isnan(got[600 + d]));
    }
  }
}

TEST(NextToken, appends_the_first_of_equal_maxima) {
  const NoGrad quiet;
  for (const int64_t V : {1, 2, 33, 1024, 50257}) {
    std::vector<float> logits(static_cast<size_t>(4 * V), -3.0f);
    const auto at = [&](int64_t b, int64_t i) -> float& { return logits[static_cast<size_t>(b * V + i)]; };
    at(0, V - 1) = 2;
    at(1, V / 2) = at(1, V - 1) = 5;
    at(3, V / 3) = NAN;
    const WrittenTokens written = written_tokens({7, 7, 7, 7}, {0, 1, 2, 3}, 5);
    append_best_tokens(Tensor::from(logits, {4, V}, test_device()), written);
    EXPECT_EQ(written.last.to_vector<int64_t>(), (std::vector<int64_t>{V - 1, V / 2, 0, -1})) << V;
    EXPECT_EQ(written.lengths.to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 3, 4}));
    const std::vector<int64_t> all = written.all.to_vector<int64_t>();
    EXPECT_EQ((std::vector<int64_t>{all[1], all[7], all[13], all[19]}), (std::vector<int64_t>{V - 1, V / 2, 0, -1}));
  }
}

TEST(NextToken, reports_invalid_arguments) {
  const Tensor logits = normal_input({2, 9}, 1);
  expect_error([&] { append_best_tokens(logits, written_tokens({1, 2, 3}, {0, 0, 0}, 4)); }, "logits (2, 9) for 3 sequences");
  WrittenTokens written = written_tokens({1, 2}, {0, 0}, 4);
  written.lengths = Tensor::zeros({1}, DType::i64, test_device());
  expect_error([&] { append_best_tokens(logits, written); }, "1 lengths and tokens of shape (2, 4) for 2 sequences");
  if (test_device() == kCpu) {
    expect_error([&] { append_best_tokens(logits, written_tokens({1, 2}, {0, 3}, 4)); }, "position 4, there is room for 4 tokens");
  }
}

}  // namespace
}  // namespace heed::test
