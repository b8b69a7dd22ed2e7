// L19: convolutions become attention layers, in memory and as checkpoints, random ones and from files.
#include "heed/core/parallel.h"
#include "heed/lab/convolution_as_attention.h"
#include "heed/models/cost.h"
#include "heed/models/parity.h"
#include "heed/ops/ops.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

using lab::Border;

TEST(ConvolutionTheorem, short_training_changes_nothing) { run_experiment("L19", {"steps=1", "points=4", "channels=2"}); }

TEST(ConvolutionTheorem, random_and_trained_kernels_match_attention) {
  const lab::Result result = run_experiment("convolution");
  for (const std::string kernel : {"random 3 × 3", "random 5 × 5", "trained 5 × 5"})
    for (const std::string dilation : {", dilation 1", ", dilation 2"}) {
      EXPECT_LT(measured(result, kernel + dilation + ": error inside"), 1e-5);
      EXPECT_LT(measured(result, kernel + dilation + ": error at the border, replicated or zero"), 1e-5);
      EXPECT_NEAR(measured(result, kernel + ": exponent of the error in e^α"), -1, 0.05);
    }
  EXPECT_LT(measured(result, "random 5 × 5, negated centres: error against the flipped kernel"), 1e-5);
  EXPECT_EQ(result.report.tables.at(0).rows.size(), 3u * 2 * 2 * 3);
  EXPECT_EQ(result.report.figures.at(1).frames.size(), 13u);
}

// With a small alpha the layer is no convolution, and the error says by how much.
TEST(ConvolutionTheorem, blurred_layers_are_undecided) {
  const lab::Result result = run_experiment("L19", {"alpha=1", "steps=2"});
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_GT(measured(result, "heads that blur: error relative to the largest output"), 0.1);
  EXPECT_NE(lab::finding_of(result.report).find("At α = 1 the heads still blur"), std::string::npos);
  EXPECT_EQ(run_experiment("L22", {"alpha=2"}).verdict, lab::Verdict::undecided);
  EXPECT_EQ(run_experiment("L23", {"alpha=2"}).verdict, lab::Verdict::undecided);
}

// A convolution computed by hand, tap by tap.
TEST(ConvolutionTheorem, the_layer_matches_sums_over_taps) {
  Rng rng(3);
  lab::Convolution convolution = lab::random_convolution(2, 3, 3, rng);
  convolution.dilation = 2;
  const int64_t Y = 7, X = 9;
  const Tensor x = random_normal({1, 2, Y, X}, 0, 1, rng, kCpu);
  const Tensor found = lab::attended(lab::attention_layer(convolution, {}, Y, X), x);
  ASSERT_EQ(found.shape(), (Shape{1, 3, Y, X}));
  const std::vector<float> w = convolution.weight.to_vector<float>(), b = convolution.bias.to_vector<float>(), in = x.to_vector<float>(),
                           out = found.to_vector<float>();
  for (int64_t o = 0; o < 3; ++o)
    for (int64_t y = 0; y < Y; ++y)
      for (int64_t at = 0; at < X; ++at) {
        double sum = b[static_cast<size_t>(o)];
        for (int64_t c = 0; c < 2; ++c)
          for (int64_t tap = 0; tap < 9; ++tap) {
            const int64_t row = std::clamp<int64_t>(y + 2 * (tap / 3 - 1), 0, Y - 1),
                          column = std::clamp<int64_t>(at + 2 * (tap % 3 - 1), 0, X - 1);
            sum += static_cast<double>(w[static_cast<size_t>((o * 2 + c) * 9 + tap)]) * in[static_cast<size_t>((c * Y + row) * X + column)];
          }
        EXPECT_NEAR(out[static_cast<size_t>((o * Y + y) * X + at)], sum, 1e-5);
      }
}

TEST(ConvolutionTheorem, even_oblong_and_grouped_kernels_match_attention) {
  Rng rng(5);
  const Tensor x = random_normal({2, 4, 13, 11}, 0, 1, rng, kCpu);
  for (const Border border : lab::kBorders)
    for (const int64_t stride : {1, 3}) {
      const auto error = [&](const Shape& shape, int64_t groups, int64_t dilation) {
        const lab::Convolution convolution{
            .weight = random_normal(shape, 0, 0.3f, rng, kCpu), .dilation = dilation, .stride = stride, .groups = groups};
        return lab::layer_error(convolution, {.border = border}, x).worst();
      };
      EXPECT_LT(error({3, 4, 4, 4}, 1, 1), 1e-5);
      EXPECT_LT(error({3, 4, 2, 5}, 1, 2), 1e-5);
      EXPECT_LT(error({6, 2, 3, 3}, 2, 1), 1e-5);
      EXPECT_LT(error({4, 1, 3, 1}, 4, 2), 1e-5);
      EXPECT_LT(error({5, 4, 1, 1}, 1, 1), 1e-5);
    }
}

TEST(ConvolutionTheorem, weights_from_a_file_give_a_checkpoint_that_loads) {
  const Folder folder;
  Rng rng(7);
  write_safetensors(folder / "net.safetensors", {{"conv1.weight", random_normal({6, 3, 5, 5}, 0, 0.1f, rng, kCpu)},
                                                 {"conv1.bias", random_normal({6}, 0, 1, rng, kCpu)},
                                                 {"fc.weight", random_normal({4, 6}, 0, 1, rng, kCpu)}});
  for (const std::string padding : {"zero", "replicate", "none"}) {
    const Path out = folder / padding;
    const lab::Result result = run_experiment("L19", {"weights=" + (folder / "net.safetensors").string(), "name=conv1", "dilation=2",
                                                      "stride=3", "padding=" + padding, "checkpoint=" + out.string(), "side=19"});
    EXPECT_LT(measured(result, "conv1, dilation 2: error inside"), 1e-5);
    EXPECT_EQ(measured(result, "checkpoint, read back: distance from the layer"), 0);
    for (const Weights weights : {Weights::trainable, Weights::packed}) {
      const std::vector<Difference> all = compare(load(out, {.weights = weights}), out / "io.safetensors", 1e-5);
      ASSERT_EQ(all.size(), 1u);
      EXPECT_TRUE(all[0].within) << all[0].relative << all[0].problem;
    }
    const Model layer = load(out);
    EXPECT_EQ(layer.params().count(), 25 + 50 + 6 * 75 + 6);
    EXPECT_EQ(input_kind(layer), InputKind::image);
    const Tensor x = random_normal({1, 3, 12, 14}, 0, 1, rng, kCpu);  // other sizes work too
    EXPECT_EQ(lab::attended(layer, x).shape(), padding == "none" ? (Shape{1, 6, 2, 2}) : (Shape{1, 6, 4, 5}));
  }
}

TEST(ConvolutionTheorem, gradients_reach_every_parameter_of_the_layer) {
  Rng rng(9);
  const Model layer = lab::attention_layer(lab::random_convolution(2, 2, 3, rng), {.alpha = 1, .border = Border::zero}, 5, 6);
  backward(mean(lab::attended(layer, random_normal({2, 2, 5, 6}, 0, 1, rng, kCpu))));
  for (const Parameter& parameter : layer.params().all()) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    EXPECT_GT(sum(parameter.tensor.grad() * parameter.tensor.grad()).item(), 0) << parameter.name;
  }
}

TEST(ConvolutionTheorem, has_the_same_bits_for_any_number_of_threads) {
  Rng rng(13);
  const Model layer = lab::attention_layer(lab::random_convolution(3, 20, 5, rng), {.alpha = 2}, 17, 13);
  const Tensor x = random_normal({2, 3, 17, 13}, 0, 1, rng, kCpu);
  const int before = thread_count();
  std::vector<float> first;
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    const std::vector<float> out = lab::attended(layer, x).to_vector<float>();
    if (threads == 1) first = out;
    EXPECT_EQ(out, first) << threads;
  }
  set_thread_count(before);
}

TEST(ConvolutionTheorem, invalid_settings_are_refused) {
  const Folder folder;
  Rng rng(11);
  const std::string file = "weights=" + (folder / "net.safetensors").string();
  write_safetensors(folder / "net.safetensors", {{"conv1.weight", random_normal({6, 3, 3, 3}, 0, 1, rng, kCpu)},
                                                 {"conv2.weight", random_normal({6, 6, 3, 3}, 0, 1, rng, kCpu)},
                                                 {"fc.weight", random_normal({4, 6}, 0, 1, rng, kCpu)}});
  write_safetensors(folder / "flat.safetensors", {{"fc.weight", random_normal({4, 6}, 0, 1, rng, kCpu)}});
  put(folder / "notes.txt", "mine");
  const auto run = [](std::vector<std::string> settings) {
    settings.push_back("steps=1");
    run_untimed("L19", settings);
  };
  expect_error<UsageError>([&] { run({file}); }, "conv1.weight, conv2.weight");
  expect_error<UsageError>([&] { run({file, "name=conv1.weigth"}); }, "did you mean 'conv1.weight'?");
  expect_error<UsageError>([&] { run({file, "name=fc"}); }, "expected (O, C, KY, KX)");
  expect_error<UsageError>([&] { run({file, "name=conv1", "bias=fc.weight"}); }, "expected (6)");
  expect_error<UsageError>([&] { run({file, "name=conv1", "groups=4"}); }, "do not divide 6 outputs");
  expect_error<UsageError>([&] { run({file, "name=conv1", "side=2"}); }, "side=2 is too small");
  expect_error<UsageError>([&] { run({file, "name=conv2", "image=x.png"}); }, "6 channels, expected 3");
  expect_error<UsageError>([&] { run({file, "name=conv1", "padding=mirror"}); }, "padding");
  expect_error<UsageError>([&] { run({file, "name=conv1", "checkpoint=" + folder.path().string()}); }, "choose another folder");
  expect_error<FileError>([&] { run({"weights=" + (folder / "flat.safetensors").string()}); }, "contains no convolution");
  expect_error<FileError>([&] { run({"weights=" + (folder / "nothing.safetensors").string()}); }, "nothing.safetensors");
}

}  // namespace
}  // namespace heed::test
