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

TEST(HeadKernels, of_gaussian_maps_are_found) {
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
  EXPECT_NEAR(heads[1].mass3, rows * columns / (all_rows * all_columns), 1e-4);
  EXPECT_TRUE(heads[1].convolves());

  EXPECT_NEAR(heads[2].mass5, 25.0 / (side * side), 1e-5);  // attends uniformly
  EXPECT_NEAR(heads[2].explained, 25.0 / (side * side), 1e-5);
  EXPECT_FALSE(heads[2].convolves());
}

// A head that attends to one fixed key is no convolution, nor is one that changes from image to image.
TEST(HeadKernels, of_other_heads_explain_little) {
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
  EXPECT_NEAR(moving.explained, 0.25, 0.01);
  EXPECT_NEAR(moving.error * moving.error, 0.75, 0.15);
}

TEST(ConvolutionalHeads, of_trained_models) {
  const lab::Result result = run_experiment("L24", {"steps=6", "data=200", "images=2", "layers=1", "width=16"});
  EXPECT_GE(measured(result, "Gaussian positions: share of heads that act as convolutions"), 0.7);
  EXPECT_LT(measured(result, "Gaussian positions: distance of the window masses from the formula"), 1e-4);
  EXPECT_LE(measured(result, "content and learned positions: share of heads that act as convolutions"), 0.3);
  EXPECT_EQ(result.report.tables.size(), 2u);
  EXPECT_EQ(result.report.tables[0].rows.size(), 9u);
}

TEST(ConvolutionalHeads, of_a_model_folder) {
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
  EXPECT_EQ(measured(result, "vit: share of heads that act as convolutions"), 0);
  EXPECT_EQ(result.report.tables.at(0).rows.size(), 4u);
  expect_error<UsageError>([] { run_experiment("L24", {"model=" + (kFixtures / "bert-model").string()}); },
                           "expected a model with attention over image patches");
  expect_error<FileError>([&] { run_experiment("L24", {"model=" + (folder / "nothing").string()}); }, "nothing");
}

}  // namespace
}  // namespace heed::test
