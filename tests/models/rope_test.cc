// Rotary positions by config.json. The fixtures llama-yarn, llama-dynamic and llama-longrope compare them with `transformers`.
#include "heed/models/rope.h"

#include <gtest/gtest.h>

#include "heed/models/architecture.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/nn/plain.h"

namespace heed::test {
namespace {

Rotary rotary_of(const Json& json, int64_t D, int64_t positions = 64) {
  const Config config(json, "held");
  return rotary_from(config, rope_in(config), D, positions);
}

Tensor rope_tokens(int64_t N, int64_t D) {
  Rng rng(3);
  return random_normal({1, 2, N, D}, 0, 1, rng, kCpu);
}

TEST(Rope, partial_rotary_factor_rotates_the_first_features) {
  const Tensor x = rope_tokens(9, 12);
  const Json linear{{"rope_type", "linear"}, {"factor", 2}};
  Json json{{"rope_parameters", linear}, {"partial_rotary_factor", 0.5}};
  const Tensor y = rotary_of(json, 12)(x);
  test::expect_near(slice(y, 3, 0, 6), rotary_of({{"rope_parameters", linear}}, 6)(slice(x, 3, 0, 6)), 1e-6f);
  test::expect_near(slice(y, 3, 6, 12), slice(x, 3, 6, 12), 0.0f);
  json = {{"rope_parameters", linear}};
  json["rope_parameters"]["partial_rotary_factor"] = 0.5;
  test::expect_near(rotary_of(json, 12)(x), y, 0.0f);
  json["rope_parameters"]["partial_rotary_factor"] = 0.1;
  expect_refused([&] { rotary_of(json, 12); }, "partial_rotary_factor is");
  // Without a scaling, transformers rotates all features.
  test::expect_near(rotary_of({{"partial_rotary_factor", 0.5}}, 12)(x), rotary_of(Json::object(), 12)(x), 0.0f);
}

TEST(Rope, an_original_length_beside_the_scaling_comes_first) {
  const Json yarn{{"rope_type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 4096}};
  const Json inside{{"max_position_embeddings", 64}, {"rope_scaling", yarn}};
  Json beside = inside, other = inside;
  beside["original_max_position_embeddings"] = 32;
  other["rope_scaling"]["original_max_position_embeddings"] = 32;
  const Tensor x = rope_tokens(9, 8);
  test::expect_near(rotary_of(beside, 8)(x), rotary_of(other, 8)(x), 0.0f);
}

TEST(Rope, an_empty_rope_scaling_counts_as_absent) {
  const Json parameters{{"rope_type", "default"}, {"rope_theta", 50}};
  const Tensor x = rope_tokens(9, 8);
  test::expect_near(rotary_of({{"rope_scaling", Json::object()}, {"rope_parameters", parameters}}, 8)(x),
                    rotary_of({{"rope_parameters", parameters}}, 8)(x), 0.0f);
}

TEST(Rope, dynamic_changes_only_texts_longer_than_those_of_training) {
  const Json dynamic{{"max_position_embeddings", 8}, {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2}}}};
  const Tensor x = rope_tokens(16, 8);
  const Rotary scaled = rotary_of(dynamic, 8), plain = rotary_of(Json::object(), 8);
  const Tensor within = slice(x, 2, 0, 8);
  test::expect_near(scaled(within), plain(within), 0.0f);
  // The base for 16 tokens: 10000 (2 * 16 / 8 - 1)^(8 / 6).
  const Json grown{{"rope_theta", 10000 * std::pow(3.0, 8.0 / 6)}};
  test::expect_near(scaled(x), rotary_of(grown, 8)(x), 1e-5f);
  // A token that is written after 15 others belongs to a text of 16.
  const Tensor last = slice(x, 2, 15, 16);
  test::expect_near(scaled(last, 15), slice(scaled(x), 2, 15, 16), 0.0f);
  const Tensor positions = Tensor::from(std::vector<int64_t>{15}, {1, 1}, kCpu);
  test::expect_near(scaled(last, positions), scaled(last, 15), 0.0f);
}

TEST(Rope, longrope_has_two_sets_of_factors) {
  const Json json{{"max_position_embeddings", 32},
                  {"rope_scaling",
                   {{"rope_type", "longrope"},
                    {"short_factor", {1, 1}},
                    {"long_factor", {2, 2}},
                    {"original_max_position_embeddings", 8},
                    {"attention_factor", 1}}}};
  const Tensor x = rope_tokens(12, 4);
  test::expect_near(rotary_of(json, 4)(slice(x, 2, 0, 8)), rotary_of(Json::object(), 4)(slice(x, 2, 0, 8)), 0.0f);
  const Json half{{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2}}}};
  test::expect_near(rotary_of(json, 4)(x), rotary_of(half, 4)(x), 1e-6f);
}

TEST(Rope, yarn_scales_scores) {
  const Json plain{{"max_position_embeddings", 32}, {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4}, {"attention_factor", 1}}}};
  Json scaled = plain;
  scaled["rope_scaling"]["attention_factor"] = 1.5;
  const Tensor x = rope_tokens(12, 8);
  test::expect_near(rotary_of(scaled, 8)(x), rotary_of(plain, 8)(x) * 1.5f, 1e-5f);
  Json usual = plain;
  usual["rope_scaling"].erase("attention_factor");  // 0.1 log(factor) + 1
  test::expect_near(rotary_of(usual, 8)(x), rotary_of(plain, 8)(x) * static_cast<float>(0.1 * std::log(4.0) + 1), 1e-5f);
}

TEST(Rope, how_many_positions) {
  const auto positions = [](const Json& json) { return rope_positions(Config(json, "held"), 2048); };
  EXPECT_EQ(positions(Json::object()), 2048);
  EXPECT_EQ(positions({{"max_position_embeddings", 100}}), 100);
  EXPECT_EQ(positions({{"max_position_embeddings", 100}, {"rope_scaling", {{"type", "dynamic"}, {"factor", 2.5}}}}), 250);
  const Json extended{{"rope_type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 50}};
  EXPECT_EQ(positions({{"max_position_embeddings", 100}, {"rope_parameters", extended}}), 200);
  EXPECT_EQ(positions({{"max_position_embeddings", 1000}, {"rope_parameters", extended}}), 1000);
}

}  // namespace
}  // namespace heed::test
