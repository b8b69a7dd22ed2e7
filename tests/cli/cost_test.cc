// heed cost from the command line: tables, JSON, measuring, questions and errors.
#include <gtest/gtest.h>

#include "heed/cli/cost_questions.h"
#include "heed/io/json.h"
#include "tests/cli/program.h"

namespace heed::test {
namespace {

class CostProgram : public testing::Test {
 protected:
  static ProgramResult heed(const std::string& arguments) { return run_heed("cost " + arguments); }
  static Json json(const std::string& arguments) {
    const ProgramResult outcome = heed(arguments + " --json");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  static void refused(const std::string& arguments, int exit_code, const std::string& message) {
    const ProgramResult outcome = heed(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  }
  static std::string fixture(const std::string& name) { return std::string(HEED_SOURCE_DIR) + "/tests/fixtures/" + name; }
};

TEST_F(CostProgram, prints_the_cost_of_a_preset) {
  const ProgramResult outcome = heed("vit-tiny batch=64");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* text : {"vit-tiny, ViTForImageClassification: 2693578 parameters", "A batch of 64 with 65 tokens", "0..4 x 5",
                           "(attend)", "training: multiply-adds", "training step", "operations per byte", "optimizer, adamw"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
}

TEST_F(CostProgram, names_the_vocabulary_that_it_counts) {
  for (const auto& [setting, vocabulary] : {std::pair{"", "1000"}, {" model.vocab_size=50257", "50257"}}) {
    const ProgramResult outcome = heed(std::string("gpt2") + setting);
    EXPECT_NE(outcome.out.find(std::string("A batch of 1 with 128 tokens, of a vocabulary of ") + vocabulary + "\n"), std::string::npos)
        << outcome.out;
  }
}

TEST_F(CostProgram, prints_json) {
  const Json vit = json("vit-tiny");
  const int64_t N = 65, D = 192;
  EXPECT_EQ(vit["inference"]["multiply_adds"], 6 * (N * 12 * D * D + 2 * N * N * D) + 64 * 48 * D + 10 * D);
  EXPECT_EQ(vit["parameters"], 2693578);
  EXPECT_EQ(vit["training"]["memory"]["optimizer"], 8 * 2693578);
  EXPECT_EQ(vit["training"]["optimizer"], "adamw");
  int64_t sum = 0;
  for (const Json& module : vit["modules"]) sum += module["training_multiply_adds"].get<int64_t>();
  EXPECT_EQ(vit["training"]["multiply_adds"], sum);
  EXPECT_EQ(json("vit-tiny optimizer=sgd")["training"]["memory"]["optimizer"], 4 * 2693578);
  const Json gpt = json("gpt-mini length=100");  // the last token: projections, feed-forward, its attention row, vocabulary
  EXPECT_EQ(gpt["step_multiply_adds"], 4 * (12 * 256 * 256 + 2 * 100 * 256) + 1000 * 256);
  EXPECT_EQ(gpt["cache_bytes_per_token"], 4 * 2 * 256 * 4);
  EXPECT_FALSE(json(fixture("bert-model")).contains("training"));  // has no loss
}

TEST_F(CostProgram, accepts_sizes_and_settings) {
  EXPECT_EQ(json("vit-tiny image=64")["size"]["tokens"], 257);
  EXPECT_EQ(json("vit-tiny width=32")["parameters"],
            json("vit-tiny width=32 heads=2")["parameters"]);  // the preset's 3 heads do not divide it
  EXPECT_EQ(json("vit-tiny layers=2 pooling=gap attention=linear")["size"]["tokens"], 64);
  EXPECT_EQ(json(fixture("gpt2-lm") + " length=8 model.n_layer=1")["modules"].size(), json(fixture("gpt2-lm"))["modules"].size() - 7);
  EXPECT_EQ(json(fixture("gpt2-lm") + "/config.json length=8")["size"]["tokens"], 8);
  const Json translation = json(fixture("marian-shared") + " length=9 target=4");
  EXPECT_EQ(translation["size"]["target"], 4);
}

TEST_F(CostProgram, measurements_match_predictions) {
  const Json both = json(fixture("gpt2-lm") + " batch=64 measure=true rounds=1");
  for (const char* call : {"inference", "training"}) {
    EXPECT_EQ(both[call]["multiply_adds"], both[call]["measured"]["multiply_adds"]);
    const double predicted = both[call]["memory"]["activations"], found = both[call]["measured"]["memory"]["activations"];
    EXPECT_NEAR(predicted, found, 0.05 * found);
    EXPECT_GT(both[call]["measured"]["seconds"], 0);
    EXPECT_GT(both[call]["measured"]["share_of_peak"], 0);
    EXPECT_GE(both[call]["measured"]["share_of_roofline"].get<double>(), 0.999 * both[call]["measured"]["share_of_peak"].get<double>());
  }
  EXPECT_GT(both["machine"]["peak_operations_per_second"], 1e8);
}

TEST_F(CostProgram, answers_questions) {
  const auto number = [](const cli::Answer& answer, const std::string& what) {
    for (const cli::Answer::Line& line : answer.lines)
      if (line.what == what) return line.number;
    ADD_FAILURE() << "no number is called " << what;
    return 0.0;
  };
  const cli::Answer channels = cli::answer("channels", {"groups=4"});
  EXPECT_EQ(number(channels, "multiply-adds, between patches"), 67'108'864);
  EXPECT_EQ(number(channels, "multiply-adds, between channels"), 134'217'728);
  EXPECT_EQ(number(channels, "multiply-adds, between channels in G groups"), 33'554'432);
  const cli::Answer heads = cli::answer("heads", {"width=64", "heads=4", "tokens=10"});
  EXPECT_EQ(number(heads, "multiply-adds, 1 head of width D"), 3 * 10 * 64 * 64 + 2 * 100 * 64);
  EXPECT_EQ(number(heads, "multiply-adds, H heads of width D/H"), 3 * 10 * 64 * 64 + 2 * 100 * 64);
  EXPECT_EQ(number(cli::answer("new-token", {"width=8", "tokens=4"}), "multiply-adds, with a KV cache"), 3 * 64 + 2 * 8 * 5);
  EXPECT_EQ(number(cli::answer("counts", {"width=8", "tokens=4"}), "fully connected: biases"), 32);
  EXPECT_EQ(number(cli::answer("kernel", {"width=8"}), "tokens above which sums first are cheaper"), 8.5);
  EXPECT_EQ(number(cli::answer("positions", {"width=8", "tokens=4"}), "scores, Gaussian positions"), 48);
  const ProgramResult printed = heed("--question heads width=512 heads=8");
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_NE(printed.out.find("194 667 520"), std::string::npos) << printed.out;
  EXPECT_EQ(json("--question new-token width=768")["settings"]["width"], 768);
}

TEST_F(CostProgram, refuses_with_the_right_exit_code) {
  refused("", 2, "cost: found no model");
  refused("vit-tny", 2, "did you mean 'vit-tiny'?");
  refused("nowhere/model", 3, "nowhere/model: there is no such folder or file");
  refused("none.json", 3, "none.json: there is no such folder or file");
  refused("vit-tiny batch=0", 2, "cost: batch=0, expected 1");
  refused("vit-tiny batc=2", 2, "did you mean 'batch'?");
  refused("vit-tiny length=3", 2, "the image size is the model's");
  refused("bert-base length=600", 2, "cost: 600 tokens, the model has 512 positions");
  refused("bert-mini image=64", 2, "cost: image=64, but BertForSequenceClassification reads no images");
  refused("vit-tiny preset=gpt2", 2, "expected one of them");
  refused("--question head", 2, "did you mean 'heads'?");
  refused("--question heads heads=7", 2, "cost: a width of 512 in 7 heads");
  refused("--question heads side=3", 2, "unknown setting 'side'");
  refused(std::string(HEED_SOURCE_DIR) + "/README.md", 3, "expected JSON");
}

}  // namespace
}  // namespace heed::test
