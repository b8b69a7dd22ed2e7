// Memory for keys and values: texts that wait for it, are paused and resumed have the same bits.
#include <gtest/gtest.h>

#include <future>

#include "heed/core/isa.h"
#include "tests/serve/client.h"
#include "tests/serve/models.h"

namespace heed::test {
namespace {

// Memory for three texts at most: others wait, are paused and resumed.
TEST(ServeCache, pauses_texts_without_changing_them) {
  if (instruction_set() == "baseline") GTEST_SKIP() << "without vector instructions, matrix products depend on the number of rows";
  ModelFolders models;
  const std::string folder = models.add("gpt2-lm");
  const Server large({folder, "--runs", "", "--quiet"}), small({folder, "--runs", "", "--quiet", "--cache", "400000"});
  const auto answer_of = [](const Server& server, int i) {
    std::string prompt = "w1";
    for (int j = 0; j < i % 5; ++j) prompt += " w" + std::to_string((i * 13 + j * 7) % 200);
    const Answer answer =
        server.post("/v1/completions",
                    {{"model", "gpt2-lm"}, {"prompt", prompt}, {"max_tokens", 20 + i}, {"seed", i}, {"logprobs", 2}, {"n", 1 + i % 3 / 2}});
    EXPECT_EQ(answer.status, 200) << answer.body << answer.problem;
    Json out = answer.json();
    for (const char* key : {"id", "created"}) out.erase(key);
    return out;
  };
  constexpr int count = 16;
  std::vector<Json> expected;
  for (int i = 0; i < count; ++i) expected.push_back(answer_of(large, i));
  std::vector<std::future<Json>> found;
  for (int i = 0; i < count; ++i) found.push_back(std::async(std::launch::async, answer_of, std::cref(small), i));
  for (int i = 0; i < count; ++i) EXPECT_EQ(found[static_cast<size_t>(i)].get(), expected[static_cast<size_t>(i)]) << i;
  EXPECT_GT(small.metric("pauses_total"), 0);
  EXPECT_EQ(large.metric("pauses_total"), 0);
  EXPECT_GE(small.metric("cache_blocks"), 3);
  EXPECT_TRUE(within_a_minute([&] { return small.metric("cache_blocks_used") == 0; }));  // counted after the last answer
}

TEST(ServeCache, limits_the_memory_of_a_text) {
  ModelFolders models;
  const Server server({models.add("gpt2-lm"), "--runs", "", "--quiet", "--cache", "70000"});
  std::string prompt = "w1";
  const Json body{{"model", "gpt2-lm"}, {"prompt", prompt}, {"max_tokens", 40}, {"temperature", 0}, {"logprobs", 1}};
  const Json answer = server.post("/v1/completions", body).json();
  ASSERT_EQ(server.metric("cache_blocks"), 1) << "expected one block of 16 tokens";
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["choices"][0]["logprobs"]["tokens"].size(), 16u);  // 15 of them in the cache
  for (int i = 0; i < 16; ++i) prompt += " w3";
  const Answer refused = server.post("/v1/completions", {{"model", "gpt2-lm"}, {"prompt", prompt}});
  EXPECT_EQ(refused.status, 422);
  EXPECT_NE(refused.error().find("--cache"), std::string::npos) << refused.error();
}

}  // namespace
}  // namespace heed::test
