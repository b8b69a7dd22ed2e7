// L24: kernels of heads, from synthetic maps and from models.
#include <numeric>

#include "heed/lab/convolution_as_attention.h"
#include "heed/lab/head_kernels.h"
#include "heed/ops/ops.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/lab/lab.h"
#include "tests/models/fixtures.h"

namespace heed::test {
namespace {

// (H, N, N) -> (1, H, N, N)
Tensor one_item(const Tensor& maps) { return reshape(maps, {1, maps.size(0), maps.size(1), maps.size(2)}); }

TEST(HeadKernels, find_the_centres_of_gaussian_maps) {
  const int64_t side = 9;
  std::vector<int64_t> queries(static_cast<size_t>(side * side));
  std::iota(queries.begin(), queries.end(), 0);
  const Tensor alpha = Tensor::from(std::vector<float>{30, 1, 0}, {3}, kCpu),
               center = Tensor::from(std::vector<float>{2, -3, -1, 0.25f, 0, 0}, {3, 2}, kCpu);
  const Tensor maps = one_item(lab::head_maps(alpha, center, side, side, queries));
  const std::vector<lab::HeadKernel> heads = lab::head_kernels(maps, 4, side, side);
  ASSERT_EQ(heads.size(), 3u);

  EXPECT_EQ(heads[0].layer, 4);
  EXPECT_EQ(heads[0].center, (std::array<int64_t, 2>{-2, 3}));
  EXPECT_NEAR(heads[0].mass3, 1, 1e-6);
  EXPECT_NEAR(heads[0].explained, 1, 1e-6);
  EXPECT_NEAR(heads[0].error, 0, 1e-5);
  EXPECT_NEAR(heads[0].kernel[12], 1, 1e-6);

  EXPECT_EQ(heads[1].head, 1);
  EXPECT_EQ(heads[1].center, (std::array<int64_t, 2>{1, 0}));
  double rows = 0, columns = 0, all_rows = 0, all_columns = 0;
  for (int i = -20; i <= 20; ++i) {
    const double row = std::exp(-1.0 * i * i), column = std::exp(-std::pow(i + 0.25, 2));
    all_rows += row, all_columns += column;
    if (std::abs(i) <= 1) rows += row, columns += column;
  }
  // Away from the border; at the border the same weight is spread over fewer keys.
  EXPECT_NEAR(heads[1].mass3, rows * columns / (all_rows * all_columns), 0.03);
  EXPECT_NEAR(heads[1].kernel[12], 1 / (all_rows * all_columns) * std::exp(-0.0625), 1e-3);
  EXPECT_TRUE(heads[1].convolves());

  EXPECT_LE(heads[2].mass5, 25.0 / (side * side) + 1e-6);  // attends uniformly; windows are cut at the border
  EXPECT_LT(heads[2].explained, 0.35);
  EXPECT_FALSE(heads[2].convolves());
}

// Explained share and masses over all queries, by their definition: no query is left out at the border.
TEST(HeadKernels, include_every_query) {
  const int64_t side = 7, N = side * side;
  std::vector<int64_t> queries(static_cast<size_t>(N));
  std::iota(queries.begin(), queries.end(), 0);
  const Tensor maps = one_item(
      lab::head_maps(Tensor::full({1}, 0.4, kCpu), Tensor::from(std::vector<float>{1.3f, -0.6f}, {1, 2}, kCpu), side, side, queries));
  const lab::HeadKernel head = lab::head_kernels(maps, 0, side, side)[0];
  const std::vector<float> a = maps.to_vector<float>();
  double squares = 0, distance = 0, mass3 = 0;
  for (int64_t q = 0; q < N; ++q)
    for (int64_t k = 0; k < N; ++k) {
      double expected = 0;
      for (int64_t i = -2; i <= 2; ++i)
        for (int64_t j = -2; j <= 2; ++j) {
          const int64_t y = std::min(std::max<int64_t>(q / side + head.center[0] + i, 0), side - 1);
          const int64_t x = std::min(std::max<int64_t>(q % side + head.center[1] + j, 0), side - 1);
          if (y * side + x == k) expected += head.kernel[static_cast<size_t>((i + 2) * 5 + j + 2)];
        }
      const double weight = a[static_cast<size_t>(q * N + k)];
      squares += weight * weight, distance += (weight - expected) * (weight - expected);
      const int64_t y = std::min(std::max<int64_t>(q / side + head.center[0], 0), side - 1);
      const int64_t x = std::min(std::max<int64_t>(q % side + head.center[1], 0), side - 1);
      if (std::abs(k / side - y) <= 1 && std::abs(k % side - x) <= 1) mass3 += weight / static_cast<double>(N);
    }
  EXPECT_NEAR(head.explained, 1 - distance / squares, 1e-9);
  EXPECT_NEAR(head.mass3, mass3, 1e-6);
  EXPECT_NEAR(head.error * head.error, 1 - head.explained, 0.1 * (1 - head.explained));
}

// A head that attends to one fixed key is not a convolution; neither is one that changes from image to image.
TEST(HeadKernels, explain_little_of_other_heads) {
  const int64_t side = 8, N = side * side;
  std::vector<float> one(static_cast<size_t>(N * N));
  for (int64_t q = 0; q < N; ++q) one[static_cast<size_t>(q * N + 27)] = 1;
  const lab::HeadKernel fixed = lab::head_kernels(Tensor::from(one, {1, 1, N, N}, kCpu), 0, side, side)[0];
  EXPECT_LT(fixed.explained, 0.5);

  std::vector<int64_t> queries(static_cast<size_t>(N));
  std::iota(queries.begin(), queries.end(), 0);
  const auto shifted = [&](float down) {
    return one_item(
        lab::head_maps(Tensor::full({1}, 30, kCpu), Tensor::from(std::vector<float>{down, 0}, {1, 2}, kCpu), side, side, queries));
  };
  const lab::HeadKernel moving = lab::head_kernels(concat({shifted(0), shifted(1), shifted(2), shifted(-2)}, 0), 0, side, side)[0];
  // By hand: a kernel of four taps of 1/4 explains 1/4 of a row of one 1; near the edges some of the taps read the same key.
  EXPECT_NEAR(moving.explained, (5 * 0.25 + 0.625 + 2 * 0.375) / 8, 1e-6);
  EXPECT_NEAR(moving.error * moving.error, 1 - moving.explained, 0.05);
}

TEST(ConvolutionalHeads, are_measured_in_trained_models) {
  const lab::Result result = run_experiment("L24", {"steps=6", "data=200", "images=2", "layers=1", "width=16", "seeds=3"});
  EXPECT_GT(measured(result, "Gaussian minus content: share of heads that act as convolutions, lower bound"), 0.5);
  EXPECT_EQ(measured(result, "Gaussian positions: heads found at their learned centre"), 27);
  EXPECT_LT(measured(result, "Gaussian positions: distance of the window masses from the formula"), 1e-4);
  EXPECT_EQ(result.report.tables.size(), 2u);
  EXPECT_EQ(result.report.tables[0].rows.size(), 9u);
}

TEST(ConvolutionalHeads, are_measured_in_a_model_folder) {
  const Folder folder;
  save(make_model({{"architectures", {"ViTForImageClassification"}},
                   {"image_size", 32},
                   {"patch_size", 4},
                   {"hidden_size", 16},
                   {"num_hidden_layers", 2},
                   {"num_attention_heads", 2},
                   {"intermediate_size", 16}}),
       folder / "vit");
  const lab::Result result = run_experiment("L24", {"model=" + (folder / "vit").string(), "images=2"});
  EXPECT_NE(result.report.statement.find("vit: 0 % of the heads act as convolutions, over all queries"), std::string::npos);
  const std::string apart = "vit: square of the error, distance from the unexplained share, all heads";
  EXPECT_LT(measured(result, apart), 0.15);
  EXPECT_GT(measured(result, apart), 0);  // values are random and never exactly equal, so the bound could fail
  EXPECT_EQ(result.report.tables.at(0).rows.size(), 4u);
  expect_error<UsageError>([] { run_experiment("L24", {"model=" + (kFixtures / "bert-model").string()}); },
                           "expected a model with attention over image patches");
  expect_error<FileError>([&] { run_experiment("L24", {"model=" + (folder / "nothing").string()}); }, "nothing");
}

}  // namespace
}  // namespace heed::test
