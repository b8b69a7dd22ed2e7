// Positions of queries after a cache, and decoding step by step, against one pass over all tokens.
#include "heed/attention/cache.h"

#include <gtest/gtest.h>

#include "heed/attention/reserved_memory.h"
#include "heed/ops/ops.h"
#include "tests/attention/reference.h"
#include "tests/expect_error.h"

namespace heed::test {
namespace {

Tensor rows(const Tensor& x, int64_t begin, int64_t end) { return slice(x, 2, begin, end); }

// A term for queries [begin, end) of N: tensors over queries are sliced; formulas get the positions from first_query.
Term cut(Term term, int64_t N, int64_t begin, int64_t end) {
  const auto shorten = [&](Tensor& x) {
    if (x.size(2) == N) x = rows(x, begin, end);
  };
  if (Bias* bias = std::get_if<Bias>(&term)) shorten(bias->values);
  if (Mask* mask = std::get_if<Mask>(&term)) shorten(mask->keep);
  if (RelativeKeys* keys = std::get_if<RelativeKeys>(&term)) shorten(keys->queries);
  if (RelativeKeys2d* keys = std::get_if<RelativeKeys2d>(&term)) shorten(keys->queries);
  if (BlockSparse* blocks = std::get_if<BlockSparse>(&term))
    blocks->pattern = slice(blocks->pattern, 1, 0, (end + blocks->size - 1) / blocks->size);
  return term;
}

TEST(QueryPositions, subsets_of_queries_match_all_queries) {
  const int64_t length = 29;
  const Sizes z{2, 4, 2, length, length, 6, 5};
  for (const Subject& subject : every_term(z))
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{length - 1, length}, {7, 12}, {11, length}}) {
      SCOPED_TRACE(subject.name + " from " + std::to_string(begin));
      Tensor q = normal_input({z.B, z.H, length, z.D}, 1), k = normal_input({z.B, z.G, length, z.D}, 2),
             v = normal_input({z.B, z.G, length, z.E}, 3);
      const Tensor g = normal_input({z.B, z.H, length, z.E}, 4);
      for (Tensor* x : {&q, &k, &v}) x->require_grad();
      Tensors leaves{q, k, v};
      for (const Tensor& p : parameters_of(subject.term)) leaves.push_back(p);
      const auto gradients = [&](const Tensor& out, const Tensor& seed) {
        for (const Tensor& leaf : leaves) leaf.zero_grad();
        backward(out, seed);
        Tensors all{out.detach()};
        for (const Tensor& leaf : leaves) all.push_back(leaf.grad());
        return all;
      };
      const Tensors expected = gradients(rows(attention(q, k, v, {.terms = {subject.term}}), begin, end), rows(g, begin, end));
      const AttentionOptions options{.terms = {cut(subject.term, length, begin, end)}, .first_query = begin};
      const Tensors got = gradients(attention(rows(q, begin, end), k, v, options), rows(g, begin, end));
      for (size_t i = 0; i < got.size(); ++i)
        expect_near("tensor " + std::to_string(i), got[i], Doubles(expected[i]), i == 0 ? 2e-6 : 2e-5);
    }
}

struct Text {
  Tensor q, k, v;
};
Text text_of(int64_t B, int64_t H, int64_t G, int64_t length) {
  return {normal_input({B, H, length, 16}, 1), normal_input({B, G, length, 16}, 2), normal_input({B, G, length, 12}, 3)};
}

std::vector<AttentionOptions> kinds(int64_t H) {
  const Tensor table = normal_input({H, 11}, 5), slopes = positive_input({H}, 6);
  return {{.terms = {Causal{}}},
          {.terms = {Causal{}, RelativeBias{table}}},
          {.terms = {Causal{}, Alibi{slopes}}},
          {.terms = {Causal{}, Window{6, 0, 2}}},
          {.terms = {Causal{}}, .hard = Hard::no_gradient}};
}

TEST(KeyValueCache, steps_of_any_size_match_one_pass) {
  for (const int64_t G : {4, 2, 1})
    for (const int64_t step : {1, 3, 13}) {
      const int64_t length = 150;
      const Text x = text_of(2, 4, G, length);
      for (const AttentionOptions& options : kinds(4)) {
        const Tensor expected = attention(x.q, x.k, x.v, options);
        KeyValueCache cache;
        for (int64_t at = 0; at < length; at += step) {
          const int64_t end = std::min(length, at + step);
          cache.append(rows(x.k, at, end), rows(x.v, at, end));
          ASSERT_EQ(cache.length(), end);
          expect_near("step " + std::to_string(at), attention(rows(x.q, at, end), cache, options), Doubles(rows(expected, at, end)), 1e-5);
        }
      }
    }
}

TEST(KeyValueCache, exposes_appended_tokens_without_copies) {
  const Text x = text_of(2, 2, 2, 300);
  KeyValueCache cache;
  int moved = 0;
  for (int64_t at = 0; at < 300; ++at) {
    const Tensor before = at > 0 ? cache.keys() : Tensor();
    cache.append(rows(x.k, at, at + 1), rows(x.v, at, at + 1));
    EXPECT_TRUE(cache.keys().shares_data_with(cache.keys()));
    moved += at > 0 && !cache.keys().shares_data_with(before);
  }
  EXPECT_EQ(moved, 3);  // 64, 128, 256, 512
  EXPECT_EQ(cache.keys().to_vector<float>(), x.k.to_vector<float>());
  EXPECT_EQ(cache.values().to_vector<float>(), x.v.to_vector<float>());
  // The memory for one more token does not grow with the text.
  const Tensor q = normal_input({2, 2, 1, 16}, 9);
  reset_peak_memory(kCpu);
  const int64_t start = memory_use(kCpu).in_use;
  attention(q, cache, {.terms = {Causal{}}});
  EXPECT_LT(memory_use(kCpu).peak - start, 2 * 300 * 16 * static_cast<int64_t>(sizeof(float)));
}

TEST(KeyValueCache, grows_without_copies_within_reserved_memory) {
  if (test_device() != kCpu) GTEST_SKIP() << "address space is reserved on the CPU only";
  const Text x = text_of(1, 2, 2, 300);
  const int64_t start = memory_use(kCpu).in_use;
  KeyValueCache cache = reserved_cache(rows(x.k, 0, 1), rows(x.v, 0, 1), 300), plain;
  for (int64_t at = 1; at < 300; ++at) {
    const Tensor before = cache.keys();
    cache.append(rows(x.k, at, at + 1), rows(x.v, at, at + 1));
    EXPECT_TRUE(cache.keys().shares_data_with(before));
  }
  EXPECT_EQ(memory_use(kCpu).in_use, start);  // reserved pages do not come from the memory pool
  plain.append(x.k, x.v);
  EXPECT_EQ(cache.keys().to_vector<float>(), plain.keys().to_vector<float>());
  const Tensor q = normal_input({1, 2, 3, 16}, 9);
  const AttentionOptions causal{.terms = {Causal{}}};
  EXPECT_EQ(attention(q, cache, causal).to_vector<float>(), attention(q, plain, causal).to_vector<float>());
  cache.append(rows(x.k, 0, 5), rows(x.v, 0, 5));  // beyond what was reserved
  EXPECT_EQ(cache.keys().to_vector<float>(), concat({x.k, rows(x.k, 0, 5)}, 2).to_vector<float>());
  const std::vector<int64_t> items{0, 0};
  cache.reorder(items);
  EXPECT_EQ(rows(cache.values(), 0, 300).to_vector<float>(), concat({x.v, x.v}, 0).to_vector<float>());
}

TEST(KeyValueCache, reorders_items_for_beam_search) {
  const int64_t length = 70;
  const Text x = text_of(3, 2, 2, length);
  KeyValueCache cache;
  cache.append(x.k, x.v);
  const Tensor before = cache.keys();
  const std::vector<int64_t> items{2, 0, 2, 2};
  cache.reorder(items);
  const Tensor chosen = Tensor::from(items, {4}, test_device());
  const Tensor k = index_select(x.k, 0, chosen), v = index_select(x.v, 0, chosen);
  EXPECT_EQ(cache.keys().to_vector<float>(), k.to_vector<float>());
  EXPECT_EQ(cache.values().to_vector<float>(), v.to_vector<float>());
  EXPECT_EQ(before.to_vector<float>(), x.k.to_vector<float>());
  const Tensor more_k = normal_input({4, 2, 1, 16}, 7), more_v = normal_input({4, 2, 1, 12}, 8), q = normal_input({4, 2, 1, 16}, 9);
  cache.append(more_k, more_v);
  const AttentionOptions options{.terms = {Causal{}}, .first_query = length};
  const Tensor expected = attention(q, concat({k, more_k}, 2), concat({v, more_v}, 2), options);
  expect_near("after a fork", attention(q, cache, {.terms = {Causal{}}}), Doubles(expected), 1e-6);
}

TEST(KeyValueCache, truncates) {
  const Text x = text_of(1, 2, 2, 20),
             other = {normal_input({1, 2, 5, 16}, 4), normal_input({1, 2, 5, 16}, 5), normal_input({1, 2, 5, 12}, 6)};
  KeyValueCache cache;
  cache.append(x.k, x.v);
  cache.truncate(12);
  EXPECT_EQ(cache.keys().to_vector<float>(), rows(x.k, 0, 12).to_vector<float>());
  cache.append(other.k, other.v);
  EXPECT_EQ(cache.keys().to_vector<float>(), concat({rows(x.k, 0, 12), other.k}, 2).to_vector<float>());
  EXPECT_EQ(cache.values().to_vector<float>(), concat({rows(x.v, 0, 12), other.v}, 2).to_vector<float>());
}

TEST(KeyValueCache, converts_half_precision_to_f32) {
  const Text x = text_of(1, 2, 1, 5);
  KeyValueCache cache;
  cache.append(cast(x.k, DType::bf16), cast(x.v, DType::bf16));
  EXPECT_EQ(cache.keys().dtype(), DType::f32);
  EXPECT_EQ(cache.keys().to_vector<float>(), cast(x.k, DType::bf16).to_vector<float>());
}

TEST(KeyValueCache, reports_invalid_arguments) {
  KeyValueCache cache;
  expect_error([&] { cache.keys(); }, "cache: it is empty, expected one append before");
  expect_error(
      [&] {
        cache.append(Tensor::zeros({1, 2, 3}, test_device()), Tensor::zeros({1, 2, 3, 4}, test_device()));
      },
      "cache: keys have shape (1, 2, 3)");
  expect_error(
      [&] {
        cache.append(Tensor::zeros({1, 2, 3, 4}, test_device()), Tensor::zeros({1, 2, 5, 4}, test_device()));
      },
      "differ in items, heads or tokens");
  cache.append(Tensor::zeros({1, 2, 3, 4}, test_device()), Tensor::zeros({1, 2, 3, 5}, test_device()));
  expect_error(
      [&] {
        cache.append(Tensor::zeros({1, 2, 3, 5}, test_device()), Tensor::zeros({1, 2, 3, 5}, test_device()));
      },
      "keys have shape (1, 2, 3, 5), expected (1, 2, n, 4)");
  expect_error([&] { cache.truncate(4); }, "cache: truncated to 4 tokens, it has 3");
  expect_error([&] { cache.reorder(std::vector<int64_t>{1}); }, "cache: item 1 of 1");
  expect_error([&] { attention(Tensor::zeros({1, 2, 4, 4}, test_device()), cache); }, "attention: 4 queries, the cache has 3 tokens");
  expect_error(
      [&] {
        attention(Tensor::zeros({1, 2, 1, 4}, test_device()), cache.keys(), cache.keys(), {.first_query = -1});
      },
      "attention: the first query is at -1");
}

}  // namespace
}  // namespace heed::test
