// L23: with queries on the strided grid the layer is a strided convolution.
#include "tests/expect_error.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

TEST(ConvolutionStride, needs_queries_on_the_strided_grid) {
  const lab::Result result = run_experiment("L23");
  EXPECT_EQ(measured(result, "all queries: outputs"), 400);
  const int outputs[] = {400, 100, 49, 25};
  for (const int s : {1, 2, 3, 4}) {
    const std::string which = "stride " + std::to_string(s);
    EXPECT_EQ(measured(result, which + ": outputs with queries on the strided grid"), outputs[s - 1]);
    EXPECT_LT(measured(result, which + ": error on the strided grid"), 1e-5);
    EXPECT_LT(measured(result, which + ": error of the layer with a stride in its config"), 1e-5);
  }
  EXPECT_LT(measured(result, "all queries, image shifted by 1 pixel: distance from the outputs shifted by 1"), 1e-5);
  EXPECT_GT(measured(result, "stride 2, image shifted by 1 pixel: distance from the outputs, shifted or not"), 0.05);
}

TEST(ConvolutionStride, holds_for_other_sizes) {
  run_experiment("L23", {"kernel=5", "strides=5", "side=17", "channels=1"});
  run_experiment("L23", {"kernel=7", "strides=2", "side=18", "channels=1"});
  expect_error<UsageError>([] { run_experiment("L23", {"kernel=5", "side=12"}); }, "side=12 is too small");
}

}  // namespace
}  // namespace heed::test
