// Every line of code in the table of docs/attention.md. documents_test.cc checks that none is missing here.
#include <gtest/gtest.h>

#include "heed/attention/cache.h"
#include "heed/attention/channel_attention.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/pooled_keys.h"
#include "heed/attention/probabilities.h"
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

TEST(AttentionExamples, run_without_errors) {
  const int64_t H = 2, N = 32, D = 8;
  const Tensor q = normal_input({1, H, N, D}, 1), k = normal_input({1, H, N, D}, 2), v = normal_input({1, H, N, D}, 3);
  const Tensor head_beta = Tensor::ones({H}, test_device()), slopes = Tensor::ones({H}, test_device()),
               scales = Tensor::ones({H}, test_device()), rates = Tensor::ones({H}, test_device()),
               alpha = Tensor::ones({H}, test_device()), center = Tensor::zeros({H, 2}, test_device());
  const Tensor lengths = Tensor::full({1}, 20, DType::i64, test_device()), keep = Tensor::ones({1, 1, N, N}, DType::boolean, test_device());
  const Tensor pattern = Tensor::ones({1, 2, 2}, DType::boolean, test_device()), values = normal_input({1, H, N, N}, 4);
  const Tensor table = normal_input({H, 9}, 5), grid_table = normal_input({H, 7, 15}, 6), buckets = normal_input({H, 32}, 7);
  const Tensor queries = normal_input({1, H, N, 4}, 8), keys_by_distance = normal_input({H, 9, 4}, 9), spread = normal_input({H, 2, 2}, 10),
               keys_by_offset = normal_input({H, 8, 4}, 11);  // 3 of rows and 5 of columns
  Rng rng(1);
  KeyValueCache cache;
  cache.append(k, v);
  const Tensors results = {
      attention(q, k, v, {.beta = head_beta}),
      attention(q, k, v, {.terms = {Causal{}, Alibi{slopes}}}),
      attention(q, k, v, {.hard = Hard::straight_through}),
      attention(q, k, v, {.dropout = 0.1f, .rng = &rng}),
      attention(q, k, v, {.terms = {Causal{}}, .first_query = 4}),
      attention(q, k, v, {.terms = {Causal{}}}),
      attention(q, k, v, {.terms = {Window{32, 32}}}),
      attention(q, k, v, {.terms = {Chunks{16, 8}}}),
      attention(q, k, v, {.terms = {Dilated{2}}}),
      attention(q, k, v, {.terms = {KeyLengths{lengths}}}),
      attention(q, k, v, {.terms = {Mask{keep}}}),
      attention(q, k, v, {.terms = {BlockSparse{pattern, 16}}}),
      attention(q, k, v, {.terms = {GridWindow{1, 1, 8}}}),
      attention(q, k, v, {.terms = {Bias{values}}}),
      attention(q, k, v, {.terms = {Alibi{slopes}}}),
      attention(q, k, v, {.terms = {Kerple{scales, rates}}}),
      attention(q, k, v, {.terms = {RelativeBias{table}}}),
      attention(q, k, v, {.terms = {RelativeBias2d{grid_table, 8}}}),
      attention(q, k, v, {.terms = {BucketedBias{buckets}}}),
      attention(q, k, v, {.terms = {RelativeKeys{queries, keys_by_distance}}}),
      attention(q, k, v, {.terms = {RelativeKeys2d{queries, keys_by_offset, 1, 8}}}),
      attention(q, k, v, {.terms = {Gaussian2d{alpha, center, 8}}}),
      attention(q, k, v, {.terms = {Gaussian2dFull{spread, center, 8}}}),
      attention(q, k, v, {.terms = {SoftCap{30}}}),
      attention(q, k, v),
      attention(q, k, v, {.hard = Hard::no_gradient}),
      attention(q, k, v, {.beta = 0.0f, .terms = {RelativeBias{table}}}),
      attention(q, k, v, {.beta = 0.0f, .terms = {Gaussian2d{alpha, center, 8}}}),
      linear_attention(q, k, v, {.causal = true}),
      channel_attention(q, k, v),
      attention(q, pooled_keys(k, {4, 8}, 2), pooled_keys(v, {4, 8}, 2)),
      attention(q, cache, {.terms = {Causal{}}}),
      attention_probabilities(q, k, {.terms = {Causal{}}}, {0}, {5}),
  };
  for (const Tensor& result : results) {
    EXPECT_EQ(result.rank(), 4);
    for (float x : result.to_vector<float>()) EXPECT_TRUE(std::isfinite(x));
  }
}

}  // namespace
}  // namespace heed::test
