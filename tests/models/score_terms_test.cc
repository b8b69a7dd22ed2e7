// The four terms of scores: against plain loops, and what they do when words or positions change.
#include "heed/models/score_terms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "heed/models/inspection.h"
#include "heed/models/variant.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

Inspection inspected(const std::string& name, const std::string& ids, InspectOptions options = {}) {
  options.input = ids;
  options.ids = options.terms = true;
  return inspect(fixture(name), options);
}

Image uniform_image() { return {.width = 32, .height = 32, .pixels = std::vector<uint8_t>(32 * 32 * 3, 99)}; }
Image varied_image() {
  Image out = uniform_image();
  for (size_t i = 0; i < out.pixels.size(); ++i) out.pixels[i] = static_cast<uint8_t>(i * 37 % 251);
  return out;
}
Inspection inspected_image(const std::string& name, const Image& image) { return inspect(fixture(name), {.image = image, .terms = true}); }

double largest(const std::vector<float>& values) {
  double out = 0;
  for (const float each : values) out = std::max(out, std::abs(static_cast<double>(each)));
  return out;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) out = std::max(out, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return out;
}

// Weights are the softmax of the sums of the terms: log-weights less sums are equal within a row. Shares add up to 1.
void expect_terms_of_weights(const Inspection& found) {
  ASSERT_FALSE(found.maps.empty());
  for (const AttentionMaps& maps : found.maps)
    for (size_t layer = 0; layer < maps.layers.size(); ++layer)
      for (size_t head = 0; head < maps.heads.size(); ++head) {
        SCOPED_TRACE(maps.kind + ", layer " + std::to_string(maps.layers[layer]) + ", head " + std::to_string(maps.heads[head]));
        const ScoreTerms& split = terms_of(found, maps, maps.layers[layer]);
        const std::array<std::vector<float>, 4> terms = split.of(maps.heads[head]);
        const std::vector<uint8_t> seen = split.seen(maps.heads[head]);
        const std::span<const float> weights = maps.map(layer, head);
        ASSERT_EQ(terms[3].size(), weights.size());
        ASSERT_EQ(seen.size(), weights.size());
        for (int64_t row = 0; row < maps.N; ++row) {
          double constant = NAN;
          for (auto i = static_cast<size_t>(row * maps.M); i < static_cast<size_t>((row + 1) * maps.M); ++i) {
            EXPECT_EQ(seen[i] != 0, weights[i] > 0) << i;
            if (!seen[i]) continue;
            const double score = static_cast<double>(terms[0][i]) + terms[1][i] + terms[2][i] + terms[3][i];
            const double rest = std::log(static_cast<double>(weights[i])) - score;
            if (std::isnan(constant)) constant = rest;
            EXPECT_NEAR(rest, constant, 1e-4) << i;
          }
        }
        const std::array<double, 4> shares = split.shares(maps.heads[head]);
        EXPECT_NEAR(shares[0] + shares[1] + shares[2] + shares[3], 1, 1e-6);
      }
}

TEST(ScoreTerms, add_up_to_scores) {
  for (const char* name : {"bert-model", "bert-causal", "roberta-model", "distilbert-masked", "gpt2-lm", "gpt2-unscaled"}) {
    SCOPED_TRACE(name);
    expect_terms_of_weights(inspected(name, "5 9 2 33 7"));
  }
  std::string many;
  for (int i = 0; i < 40; ++i) many += std::to_string(i * i % 200) + " ";
  expect_terms_of_weights(inspected("gpt2-lm", many));
  const Inspection translation = inspected("marian-translate", "5 6 7 8", {.target = "9 3 1 4"});
  EXPECT_EQ(translation.maps.size(), 3u);
  expect_terms_of_weights(translation);
  for (const char* name : {"vit-classify", "deit-teacher", "dinov2-registers", "clip-pairs"}) {
    SCOPED_TRACE(name);
    expect_terms_of_weights(inspected_image(name, varied_image()));
  }
  // Changed attention: without a key, at another temperature.
  expect_terms_of_weights(inspected("gpt2-lm", "5 9 2 33 7", {.beta = 3, .hidden = {1}, .off = {{"attention", 0, 1}}}));
}

TEST(ScoreTerms, add_up_with_shared_keys) {
  const Model model = make_model({{"architectures", {"LlamaForCausalLM"}},
                                  {"hidden_size", 16},
                                  {"num_attention_heads", 4},
                                  {"num_key_value_heads", 2},
                                  {"intermediate_size", 20},
                                  {"num_hidden_layers", 2},
                                  {"vocab_size", 30},
                                  {"max_position_embeddings", 16},
                                  {"initializer_range", 1.0},
                                  {"heed", {{"positions", {"sinusoidal", "rotary"}}}}});
  expect_terms_of_weights(inspect({.model = model, .folder = "llama"}, {.input = "5 9 2 13 7", .ids = true, .terms = true}));
}

using Matrix = std::vector<std::vector<double>>;

Matrix parameter(const Model& model, const std::string& name) {
  for (const Parameter& each : model.params().all())
    if (each.name == name) {
      const int64_t columns = each.tensor.size(-1);
      Matrix out(static_cast<size_t>(each.tensor.count() / columns));
      const std::vector<float> values = each.tensor.to_vector<float>();
      for (size_t i = 0; i < values.size(); ++i) out[i / static_cast<size_t>(columns)].push_back(values[i]);
      return out;
    }
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

std::vector<double> normalized(const std::vector<double>& x, const Matrix& weight, const Matrix& bias) {
  double mean = 0, variance = 0;
  for (const double each : x) mean += each / static_cast<double>(x.size());
  for (const double each : x) variance += (each - mean) * (each - mean) / static_cast<double>(x.size());
  std::vector<double> out;
  for (size_t i = 0; i < x.size(); ++i) out.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) * weight[0][i] + bias[0][i]);
  return out;
}

// The first layer of GPT-2: norm, projection, causal scores over the square root of the width.
TEST(ScoreTerms, agree_with_plain_loops) {
  const Model model = load(fixture("gpt2-lm"), {.weights = Weights::trainable});
  const std::vector<size_t> ids{5, 9, 2, 33, 9};
  const size_t N = ids.size(), D = 48, H = 3, width = D / H;
  const std::string at = "transformer.";
  const Matrix words = parameter(model, at + "wte.weight"), places = parameter(model, at + "wpe.weight"),
               scale = parameter(model, at + "h.0.ln_1.weight"), shift = parameter(model, at + "h.0.ln_1.bias"),
               weight = parameter(model, at + "h.0.attn.c_attn.weight"), bias = parameter(model, at + "h.0.attn.c_attn.bias");
  const auto project = [&](size_t word, size_t place) {  // -> queries and keys, 2 D
    std::vector<double> x(D), out;
    for (size_t d = 0; d < D; ++d) x[d] = words[word][d] + places[place][d];
    x = normalized(x, scale, shift);
    for (size_t o = 0; o < 2 * D; ++o) {
      out.push_back(bias[0][o]);
      for (size_t d = 0; d < D; ++d) out[o] += weight[o][d] * x[d];
    }
    return out;
  };
  Matrix whole, mean;  // of every place: with its own word, and the mean over all words of the text
  for (size_t n = 0; n < N; ++n) {
    whole.push_back(project(ids[n], n));
    mean.emplace_back(2 * D);
    for (const size_t id : ids) {
      const std::vector<double> other = project(id, n);
      for (size_t o = 0; o < 2 * D; ++o) mean[n][o] += other[o] / static_cast<double>(N);
    }
  }
  const Inspection found = inspect({.model = model, .folder = "gpt2"}, {.input = "5 9 2 33 9", .ids = true, .terms = true});
  const ScoreTerms& split = terms_of(found, found.maps[0], 0);
  for (size_t h = 0; h < H; ++h) {
    const std::array<std::vector<float>, 4> terms = split.of(static_cast<int64_t>(h));
    std::array<double, 4> covariance{};
    for (size_t i = 0; i < N; ++i) {
      std::array<std::vector<double>, 4> row;
      for (size_t j = 0; j < N; ++j) {
        std::array<double, 4> expected{};
        for (size_t d = 0; d < width; ++d) {
          const size_t q = h * width + d, k = D + q;
          const double q_place = mean[i][q], k_place = mean[j][k], q_word = whole[i][q] - q_place, k_word = whole[j][k] - k_place,
                       root = std::sqrt(static_cast<double>(width));
          expected[0] += q_word * k_word / root;
          expected[1] += q_word * k_place / root;
          expected[2] += q_place * k_word / root;
          expected[3] += q_place * k_place / root;
        }
        for (size_t t = 0; t < 4; ++t) {
          EXPECT_NEAR(terms[t][i * N + j], expected[t], 1e-5) << h << ' ' << i << ' ' << j << ' ' << kScoreTermNames[t];
          if (j <= i) row[t].push_back(expected[t]);
        }
      }
      for (size_t t = 0; t < 4; ++t)
        for (size_t a = 0; a <= i; ++a)
          for (size_t b = 0; b <= i; ++b)  // the covariance as a sum over pairs
            for (size_t other = 0; other < 4; ++other)
              covariance[t] += (row[t][a] - row[t][b]) * (row[other][a] - row[other][b]) / static_cast<double>(2 * (i + 1));
    }
    const double variance = covariance[0] + covariance[1] + covariance[2] + covariance[3];
    const std::array<double, 4> shares = split.shares(static_cast<int64_t>(h));
    for (size_t t = 0; t < 4; ++t) EXPECT_NEAR(shares[t], covariance[t] / variance, 1e-4) << h << ' ' << kScoreTermNames[t];
    const std::array<std::vector<float>, 4> some = split.of(static_cast<int64_t>(h), {3, 1});
    for (size_t t = 0; t < 4; ++t)
      for (size_t j = 0; j < N; ++j) {
        EXPECT_EQ(some[t].size(), 2 * N);
        EXPECT_NEAR(some[t][j], terms[t][3 * N + j], 1e-6);
        EXPECT_NEAR(some[t][N + j], terms[t][N + j], 1e-6);
      }
  }
}

// In the first layer every order of the words has the same position parts. Later layers read the order; rotations of a text share theirs.
TEST(ScoreTerms, of_positions_do_not_depend_on_the_words) {
  const Inspection found = inspected("bert-model", "5 9 2 33 7"), shuffled = inspected("bert-model", "33 7 9 5 2"),
                   rotated = inspected("bert-model", "33 7 5 9 2");
  for (const auto& [other, layers] : {std::pair(&shuffled, 1), {&rotated, 2}})
    for (int64_t layer = 0; layer < layers; ++layer)
      for (const int64_t head : {0, 1, 2}) {
        const std::array<std::vector<float>, 4> a = terms_of(found, found.maps[0], layer).of(head),
                                                b = terms_of(*other, other->maps[0], layer).of(head);
        EXPECT_LT(distance(a[3], b[3]), 1e-4 * largest(a[3]));
        for (size_t t = 0; t < 3; ++t) EXPECT_GT(distance(a[t], b[t]), 1e-2 * largest(a[t])) << kScoreTermNames[t];
      }
}

// A token of width 1 for every place, in the order after a rotation.
std::vector<float> rotated_places(int64_t N, int64_t turn, int64_t fixed) {
  std::vector<float> numbers(static_cast<size_t>(N));
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const AddedPositions positions{.table = Tensor::zeros({N, 1}, kCpu), .fixed = fixed};
  const MovedTokens moved(turn);
  return positions(Tensor::from(numbers, {1, N, 1}, kCpu)).to_vector<float>();
}

TEST(ScoreTerms, rotate_the_tokens_of_an_input) {
  EXPECT_EQ(rotated_places(5, 0, 0), (std::vector<float>{0, 1, 2, 3, 4}));
  EXPECT_EQ(rotated_places(5, 2, 0), (std::vector<float>{3, 4, 0, 1, 2}));
  EXPECT_EQ(rotated_places(5, 7, 0), (std::vector<float>{3, 4, 0, 1, 2}));  // next to a longer input
  EXPECT_EQ(rotated_places(5, 1, 2), (std::vector<float>{0, 1, 4, 2, 3}));
  EXPECT_EQ(rotated_places(2, 1, 2), (std::vector<float>{0, 1}));
  // Of 160 tokens, by 5, 15, ... 155 places.
  EXPECT_EQ(rotated_places(160, 0, 0)[0], 155);
  EXPECT_EQ(rotated_places(160, MovedTokens::kRotations - 1, 0)[0], 5);
  const AddedPositions none;
  const MovedTokens moved(1);
  EXPECT_EQ(none(Tensor::from(std::vector<float>{1, 2}, {1, 2, 1}, kCpu)).to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(moved.longest(), 0);
}

// Tokens of equal content: every other term vanishes. The class token and registers belong to the positions, as every image has them.
TEST(ScoreTerms, of_content_vanish_when_all_tokens_are_equal) {
  std::vector<Inspection> all{inspected("gpt2-lm", "9 9 9 9")};
  for (const char* name : {"vit-classify", "deit-teacher", "dinov2-registers", "clip-pairs"})
    all.push_back(inspected_image(name, uniform_image()));
  for (const Inspection& found : all) {
    SCOPED_TRACE(found.architecture);
    const AttentionMaps& maps = found.maps[0];
    for (const int64_t layer : maps.layers)
      for (const int64_t head : maps.heads) {
        const ScoreTerms& split = terms_of(found, maps, layer);
        const std::array<std::vector<float>, 4> terms = split.of(head);
        for (size_t t = 0; t < 3; ++t) EXPECT_LT(largest(terms[t]), 1e-4 * largest(terms[3])) << kScoreTermNames[t];
        EXPECT_NEAR(split.shares(head)[3], 1, 1e-3);
      }
  }
}

TEST(ScoreTerms, of_scores_that_do_not_vary_have_no_shares) {
  const Inspection found = inspected("gpt2-lm", "9");
  for (const double share : terms_of(found, found.maps[0], 1).shares(0)) EXPECT_EQ(share, 0);
}

TEST(ScoreTerms, need_positions_on_tokens) {
  expect_error<UsageError>(
      [] { inspected("llama-grouped", "5 9 2"); },
      "the four terms of scores need positions that are added to tokens (learned, learned_2d, sinusoidal, sinusoidal_2d); "
      "LlamaForCausalLM has rotary: rotates pairs of features");
  expect_error<UsageError>([] { inspected("t5-relu", "5 9 2", {.target = "3 4"}); }, "T5ForConditionalGeneration has bucketed: ");
  const auto bert = [](const char* positions) {
    return make_model({{"architectures", {"BertModel"}},
                       {"hidden_size", 12},
                       {"num_attention_heads", 2},
                       {"num_hidden_layers", 1},
                       {"intermediate_size", 12},
                       {"vocab_size", 30},
                       {"heed", {{"positions", positions}}}});
  };
  for (const auto& [positions, text] : {std::pair("alibi", "BertModel has alibi: "), {"none", "BertModel has none: no positions"}}) {
    const Model model = bert(positions);
    expect_error<UsageError>([&] { inspect({.model = model, .folder = "bert"}, {.input = "5 9", .ids = true, .terms = true}); }, text);
  }
}

}  // namespace
}  // namespace heed::test
