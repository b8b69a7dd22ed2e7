// More key numbers of experiments, computed again by plain loops or closed forms in double precision: as in by_hand_test.cc.
#include <algorithm>
#include <random>
#include <set>

#include "heed/core/random.h"
#include "heed/lab/coverage.h"
#include "heed/lab/linear_probe.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

std::vector<double> plain_softmax(const std::vector<double>& z, double beta) {
  const double most = *std::max_element(z.begin(), z.end());
  std::vector<double> out;
  double all = 0;
  for (const double each : z) out.push_back(std::exp(beta * (each - most))), all += out.back();
  for (double& each : out) each /= all;
  return out;
}

// Orthonormal codes: a token's own score is beta, all others are 0.
TEST(ByHand, wrong_tokens_of_L4) {
  const lab::Result result = run_experiment("L4", {"tokens=16", "beta=8"});
  EXPECT_NEAR(measured(result, "β = 8: weight on the wrong tokens"), 15 / (15 + std::exp(8.0)), 1e-6);
}

TEST(ByHand, variance_of_L7) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(0.5, 1);
  double sum = 0, square = 0;
  constexpr int draws = 400'000;
  for (int i = 0; i < draws; ++i) {
    const double term = normal(random) * normal(random);
    sum += term, square += term * term;
  }
  const lab::Result result = run_experiment("L7", {"widths=2", "least_width=4"});
  EXPECT_NEAR(measured(result, "variance of one term q_i k_i"), square / draws - std::pow(sum / draws, 2), 0.04);
}

// The derivative by central differences.
TEST(ByHand, scaled_scores_of_L8) {
  const std::vector<double> z{-3, 1, 100, 5, -1};
  const lab::Result result = run_experiment("L8");
  for (const auto& row : result.report.tables.at(0).rows) {
    const double beta = std::stod(std::get<std::string>(row[0]));
    if (beta == 0) continue;
    double most = 0;
    for (size_t j = 0; j < z.size(); ++j) {
      std::vector<double> up = z, down = z;
      up[j] += 1e-4 / beta, down[j] -= 1e-4 / beta;
      const std::vector<double> above = plain_softmax(up, beta), below = plain_softmax(down, beta);
      for (size_t i = 0; i < z.size(); ++i) most = std::max(most, std::abs(above[i] - below[i]) / 2e-4);
    }
    const std::vector<double> y = plain_softmax(z, beta);
    EXPECT_NEAR(std::get<double>(row[1]), *std::max_element(y.begin(), y.end()), 1e-5) << beta;
    EXPECT_NEAR(std::get<double>(row[2]), most, 1e-5) << beta;
  }
}

// Nadaraya and Watson's smoother on the same points.
TEST(ByHand, error_of_the_curve_of_L9) {
  Rng rng(1);
  const std::vector<float> places = random_uniform({150, 1}, -0.5f, 0.5f, rng, kCpu).to_vector<float>(),
                           noise = random_normal({150, 1}, 0, 0.3f, rng, kCpu).to_vector<float>();
  const auto curve = [](double x) { return std::sin(3 * M_PI * x) + 0.5 * std::cos(8 * x * x); };
  double squares = 0;
  for (int i = 0; i <= 200; ++i) {
    const double at = -0.5 + i / 200.0;
    double weights = 0, sum = 0;
    for (size_t j = 0; j < places.size(); ++j) {
      const double weight = std::exp(-std::pow((at - places[j]) / 0.04, 2) / 2);
      weights += weight, sum += weight * (curve(places[j]) + noise[j]);
    }
    squares += std::pow(sum / weights - curve(at), 2) / 201;
  }
  EXPECT_NEAR(measured(run_experiment("L9", {"side=16"}), "curve: error as a share of the noise"), std::sqrt(squares) / 0.3, 1e-4);
}

// Every multiply-add of one new token, counted one by one.
TEST(ByHand, new_token_of_L16) {
  const int64_t D = 32;
  const lab::Result result = run_experiment("L16", {"width=32", "least_tokens=16", "lengths=3", "rounds=3"});
  for (const int64_t N : {16, 32}) {
    int64_t cached = 0, again = 0;
    for (int64_t token = 0; token <= N; ++token) {
      const int64_t own = 3 * D * D + 2 * D * (token + 1);  // its projections, and scores and sums of the keys it sees
      again += own;
      if (token == N) cached = own;
    }
    EXPECT_EQ(measured(result, "KV cache, N = " + std::to_string(N) + ": 3D² + 2D(N+1)"), cached);
    EXPECT_EQ(measured(result, "recomputed, N = " + std::to_string(N) + ": 3D²(N+1) + D(N+1)(N+2)"), again);
  }
}

TEST(ByHand, crossover_of_L18) {
  const lab::Result result = run_experiment("L18", {"width=16", "lengths=4", "rounds=3"});
  int64_t sums = 0, map = 0;
  for (int64_t token = 0; token < 16; ++token) {
    sums += 2 * 16 * 16 + 16;  // into the sums of keys times values, out of them, and the normalizer
    for (int64_t key = 0; key < 16; ++key) map += 2 * 16;
  }
  EXPECT_EQ(measured(result, "sums first, N = 16: N (2D² + D)"), sums);
  EXPECT_EQ(measured(result, "map first, N = 16: 2 N² D"), map);
  EXPECT_NEAR(measured(result, "N with equal multiply-adds: (2D² + D) / 2D"), static_cast<double>(sums) / 16 / 32, 1e-9);
}

// All keys of a 15 x 15 grid, from its middle.
TEST(ByHand, neighbours_of_L20) {
  double all = 0, best = 0;
  for (int y = 0; y < 15; ++y)
    for (int x = 0; x < 15; ++x) {
      const double weight = std::exp(-10 * (std::pow(7 - y - 2, 2) + std::pow(7 - x + 3, 2)));
      all += weight, best = std::max(best, weight);
    }
  EXPECT_NEAR(measured(run_experiment("L20"), "α = 10: weight of all other keys, 4 e^-α"), 1 - best / all, 1e-6);
}

TEST(ByHand, pixels_of_L22_and_L23) {
  const lab::Result dilated = run_experiment("L22", {"side=17"}), strided = run_experiment("L23", {"side=17"});
  for (int step = 1; step <= 4; ++step) {
    std::set<std::pair<int, int>> seen;
    int least = 100, most = -100;
    for (int a = -1; a <= 1; ++a)
      for (int b = -1; b <= 1; ++b) {
        seen.insert({a * step, b * step});
        least = std::min(least, a * step), most = std::max(most, a * step);
      }
    const std::string dilation = "dilation " + std::to_string(step);
    EXPECT_EQ(measured(dilated, dilation + ": pixels that the central output depends on"), seen.size());
    EXPECT_EQ(measured(dilated, dilation + ": their extent"), most - least + 1);
    int outputs = 0;
    for (int y = 0; y < 17; y += step)
      for (int x = 0; x < 17; x += step) ++outputs;
    EXPECT_EQ(measured(strided, "stride " + std::to_string(step) + ": outputs with queries on the strided grid"), outputs);
  }
}

TEST(ByHand, moments_and_products_of_L25) {
  const lab::Result result = run_experiment("L25");
  double all = 0, mean = 0, square = 0;
  for (int key = -40; key <= 40; ++key) {  // rows from the query's, at alpha 1/4 and centre 1: delta = -key
    const double weight = std::exp(-0.25 * std::pow(-key - 1, 2));
    all += weight, mean += weight * key, square += weight * key * key;
  }
  mean /= all;
  EXPECT_NEAR(measured(result, "Gaussian, α 1/4, Δ (1, -2): mean attended row from row 16"), 16 + mean, 1e-4);
  EXPECT_NEAR(measured(result, "variance of the row, 1/(2α)"), square / all - mean * mean, 1e-4);
  double product = 0;
  for (int i = 0; i < 32; ++i) {
    const double angle = 17 * std::pow(10000, -2.0 * i / 64);
    product += std::sin(angle) * std::sin(angle) + std::cos(angle) * std::cos(angle);
  }
  EXPECT_NEAR(measured(result, "sinusoidal: product with itself, D/2"), product, 1e-3);
  EXPECT_NEAR(measured(result, "ALiBi, slope 1/4: weight of the next key relative to the own"), std::exp(-0.25), 1e-5);
}

// Nine heads at the 3 x 3 offsets, then the first of them moved next to another. The largest weight is a product over rows and columns.
TEST(ByHand, coverage_of_L45) {
  GaussianLayer layer;
  for (const double row : {-1, 0, 1})
    for (const double column : {-1, 0, 1}) layer.heads.push_back(gaussian_head({2.0f}, {row, column}));
  const auto largest = [](double off) {  // along one direction, for a centre that far from its nearest offset
    double all = 0;
    for (int i = -20; i <= 20; ++i) all += std::exp(-2 * (i + off) * (i + off));
    return std::exp(-2 * off * off) / all;
  };
  const lab::LayerCoverage all = lab::coverage_of(layer, 3);
  EXPECT_EQ(all.covered, 1);
  EXPECT_EQ(all.sharp, 1);
  EXPECT_NEAR(all.one_hot, largest(0) * largest(0), 1e-12);
  layer.heads[0].center = {1.4, -0.6};
  const lab::LayerCoverage moved = lab::coverage_of(layer, 3);
  EXPECT_NEAR(moved.covered, 8.0 / 9, 1e-12);
  EXPECT_NEAR(moved.one_hot, (8 * largest(0) * largest(0) + largest(0.4) * largest(0.4)) / 9, 1e-12);
  EXPECT_EQ(lab::coverage_of(layer, 1).covered, 1);
}

TEST(SoftmaxAxis, a_total_of_1_by_chance_contradicts_nothing) {
  const lab::Result result = run_experiment("L32", {"seed=5"});
  EXPECT_EQ(result.verdict, lab::Verdict::corrected);  // the largest total is 2.25
  EXPECT_NEAR(measured(result, "over the columns of Q^T K: smallest total weight of a query"), 1, 0.05);
}

TEST(AbsoluteTerms, large_contents_keep_the_mixed_terms) { run_experiment("L48", {"content=100"}); }

TEST(ByHand, parameters_of_L30) {
  const lab::Result result = run_experiment("L30", {"patch=4", "side=16", "width=12"});
  int64_t parameters = 0;
  for (int output = 0; output < 12; ++output) parameters += 3 * 4 * 4 + 1;
  EXPECT_EQ(measured(result, "parameters, D (C P² + 1)"), parameters);
  EXPECT_EQ(measured(result, "tokens"), (16 / 4) * (16 / 4));
}

// The probe of L43: least squares of two groups on a line is known in closed form.
TEST(LinearProbe, learns_linear_labels_only) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  lab::Labelled line, square;
  for (int i = 0; i < 400; ++i) {
    const double a = normal(random), b = normal(random);
    line.add({a, b, normal(random)}, a + b > 0);
    square.add({a, b, normal(random)}, a * b > 0);  // no line separates these
  }
  EXPECT_GT(lab::balanced_accuracy(lab::LinearProbe(line), line), 0.95);
  EXPECT_LT(lab::balanced_accuracy(lab::LinearProbe(square), square), 0.65);
  lab::Labelled uneven;  // a guess of the larger class is right for 9 of 10 and balanced for half
  for (int i = 0; i < 100; ++i) uneven.add({0.0}, i % 10 == 0);
  EXPECT_NEAR(lab::balanced_accuracy(lab::LinearProbe(uneven), uneven), 0.5, 1e-9);
}

TEST(GenerativeOrContrastive, short_runs_are_undecided) {
  const lab::Result result = run_untimed("L43", {"documents=50", "epochs=1", "seeds=2", "width=8", "heads=2", "layers=1"});
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_NE(lab::finding_of(result.report).find("the next sentence is learned in 0 of 2 runs"), std::string::npos);
}

TEST(CopyDistance, attention_copies_over_some_tokens) {
  const lab::Result result = run_untimed("L49", {"nearest=2", "distances=2", "seeds=2", "width=16", "steps=200"});
  EXPECT_EQ(std::get<std::string>(result.report.tables.at(0).rows.at(0).at(4)), "2 of 2");
}

}  // namespace
}  // namespace heed::test
