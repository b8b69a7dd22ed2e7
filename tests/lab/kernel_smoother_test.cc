// L9: attention against the kernel smoother and non-local means.
#include "heed/lab/images.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

double error_in(const lab::Result& result, size_t row) { return std::get<double>(result.report.tables.at(0).rows.at(row).at(1)); }

TEST(KernelSmoother, matches_the_formulas) {
  const lab::Result result = run_experiment("L9", {"side=32"});
  EXPECT_LT(measured(result, "curve: distance from the kernel smoother"), 2e-5);
  EXPECT_LT(measured(result, "curve: error as a share of the noise"), 0.5);
  EXPECT_LT(measured(result, "image: distance from non-local means"), 3e-5);
  EXPECT_LT(measured(result, "image: error as a share of the noise"), 0.65);
}

TEST(KernelSmoother, patches_denoise_better_than_positions) {
  const lab::Result result = run_experiment("kernel-smoother", {"side=48", "points=40"});
  EXPECT_NEAR(error_in(result, 0), 0.1, 0.005);               // the noise
  EXPECT_LT(error_in(result, 1), 0.7 * error_in(result, 0));  // the best blur
  EXPECT_LT(error_in(result, 2), error_in(result, 1));
}

TEST(KernelSmoother, accepts_windows_single_pixel_patches_and_image_files) {
  run_experiment("L9", {"side=16", "window=3", "radius=0", "strength=1.5", "seed=6", "bandwidth=0.08"});
  const Folder folder;
  write_png(folder / "own.png", lab::image_for("", 40, 3));
  run_experiment("L9", {"side=20", "image=" + (folder / "own.png").string()});
  expect_error<FileError>([] { run_experiment("L9", {"side=16", "image=/nowhere.png"}); }, "/nowhere.png");
  expect_error<UsageError>([] { run_experiment("L9", {"side=17"}); }, "side is 17, expected an even number");
}

TEST(KernelSmoother, fails_for_a_wide_kernel) {
  const lab::Result result = run_experiment("L9", {"bandwidth=1", "side=16"});
  EXPECT_NE(result.report.statement.find("On the curve this kernel blurs more than it removes noise"), std::string::npos);
  EXPECT_GT(measured(result, "curve: error as a share of the noise"), 1);
  EXPECT_LT(measured(result, "curve: distance from the kernel smoother"), 1e-5);
}

TEST(KernelSmoother, images_keep_their_colours) {
  const Image image = lab::image_for("", 24);
  EXPECT_EQ(lab::image_of(lab::colours_of(image)).pixels, image.pixels);
  EXPECT_EQ(image.width, 24);
}

}  // namespace
}  // namespace heed::test
