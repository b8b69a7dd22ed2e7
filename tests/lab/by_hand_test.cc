// Key numbers of experiments, computed again in double precision by plain loops or closed forms, without heed's ops. Only the random
// tokens come from heed. Counts of parameters and multiply-adds are in the tests of their experiments.
#include <algorithm>

#include "heed/core/random.h"
#include "tests/lab/lab.h"

namespace heed::test {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows rows_of(const Tensor& x, int64_t rows, int64_t columns) {
  const std::vector<float> values = x.to_vector<float>();
  Rows out(static_cast<size_t>(rows));
  for (size_t i = 0; i < values.size(); ++i) out[i / static_cast<size_t>(columns)].push_back(values[i]);
  return out;
}
Rows drawn(int64_t rows, int64_t columns, Rng& rng, float deviation = 1) {
  return rows_of(random_normal({rows, columns}, 0, deviation, rng, kCpu), rows, columns);
}
double dot_of(const std::vector<double>& a, const std::vector<double>& b) {
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) out += a[i] * b[i];
  return out;
}
std::vector<double> softmax_of(std::vector<double> z) {
  const double most = *std::max_element(z.begin(), z.end());
  double all = 0;
  for (double& each : z) all += each = std::exp(each - most);
  for (double& each : z) each /= all;
  return z;
}
std::vector<double> weights_of(const std::vector<double>& q, const Rows& k, double beta) {
  std::vector<double> scores;
  for (const std::vector<double>& key : k) scores.push_back(beta * dot_of(q, key));
  return softmax_of(scores);
}
// The measurement whose prediction has that rule, of those with this name.
double published_of(const lab::Result& result, const std::string& name) {
  for (const lab::Measured& each : result.report.measured)
    if (each.name == name && each.rule == lab::Measured::Rule::contradicts) return each.predicted;
  return std::nan("");
}

TEST(ByHand, entropy_of_L1) {
  Rng rng(1);
  const Rows q = drawn(16, 16, rng), k = drawn(16, 16, rng);
  for (const double beta : {5.0, 0.5}) {
    double entropy = 0;
    for (const std::vector<double>& query : q)
      for (const double p : weights_of(query, k, beta)) entropy -= p > 0 ? p * std::log(p) / 16 : 0;
    const std::string setting = "beta=" + std::to_string(beta);
    EXPECT_NEAR(measured(run_experiment("L1", {setting}), "entropy at the largest β, below log N"), entropy, 1e-5);
  }
}

TEST(ByHand, share_of_queries_of_L3) {
  Rng rng(1);
  const Rows q = drawn(64, 16, rng), k = drawn(16, 16, rng);
  double positive = 0;
  for (const std::vector<double>& query : q) positive += dot_of(query, k[0]) > 0;
  EXPECT_EQ(measured(run_experiment("L3"), "share of queries whose weight increases"), positive / 64);
}

TEST(ByHand, first_order_of_L2) {
  // The length of a_j (v_j - h) beta q.e over all queries and noises, at noises of size 0.01.
  Rng rng(1);
  const Rows q = drawn(12, 16, rng), k = drawn(12, 16, rng), v = drawn(12, 16, rng);
  Rows noises;
  for (int i = 0; i < 16; ++i) noises.push_back(drawn(1, 16, rng)[0]);
  double squares = 0;
  for (const std::vector<double>& e : noises)
    for (const std::vector<double>& query : q) {
      const std::vector<double> a = weights_of(query, k, 0.25);
      for (size_t c = 0; c < 16; ++c) {
        double h = 0;
        for (size_t j = 0; j < 12; ++j) h += a[j] * v[j][c];
        squares += std::pow(a[0] * (v[0][c] - h) * 0.25 * dot_of(query, e) * 0.01 / (0.25 * 4), 2);
      }
    }
  const lab::Result result = run_experiment("L2");
  const auto length = std::find_if(result.report.measured.begin(), result.report.measured.end(),
                                   [](const lab::Measured& each) { return each.name.starts_with("length of the change"); });
  ASSERT_NE(length, result.report.measured.end());
  EXPECT_NEAR(length->predicted, std::sqrt(squares / 16), 1e-4 * length->predicted);
}

TEST(ByHand, gelu_forms_of_L26) {
  double most = 0, where = 0;
  for (int i = 0; i <= 60000; ++i) {
    const double x = i * 1e-4, exact = x * 0.5 * std::erfc(-x / std::sqrt(2.0)),
                 form = 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    if (std::abs(form - exact) > most) most = std::abs(form - exact), where = x;
  }
  const lab::Result result = run_experiment("L26");
  EXPECT_NEAR(measured(result, "largest difference of the two"), most, 2e-6);
  EXPECT_NEAR(measured(result, "absolute value of x at the largest difference"), where, 0.03);
}

TEST(ByHand, deviation_of_L27) {
  Rng rng(1);
  const Rows x = drawn(24, 32, rng);  // 4 items of 6 tokens
  double mean = 0, square = 0;
  for (const double each : x[0]) mean += each / 32;
  for (const double each : x[0]) square += (each - mean) * (each - mean) / 32;
  EXPECT_NEAR(measured(run_experiment("L27"), "deviation over a token's features"), std::sqrt(square / (square + 1e-5)), 1e-5);
}

TEST(ByHand, total_weights_of_L32) {
  Rng rng(1);
  const Rows q = drawn(16, 6, rng), k = drawn(16, 9, rng);  // tokens are columns
  std::vector<double> total(6);
  for (size_t j = 0; j < 9; ++j) {
    std::vector<double> scores(6);
    for (size_t i = 0; i < 6; ++i)
      for (size_t c = 0; c < 16; ++c) scores[i] += q[c][i] * k[c][j] / 4;
    const std::vector<double> column = softmax_of(scores);
    for (size_t i = 0; i < 6; ++i) total[i] += column[i];
  }
  const lab::Result result = run_experiment("L32");
  EXPECT_NEAR(measured(result, "over the columns of Q^T K: largest total weight of a query"), *std::max_element(total.begin(), total.end()),
              1e-5);
  EXPECT_NEAR(measured(result, "over the columns of Q^T K: smallest total weight of a query"),
              *std::min_element(total.begin(), total.end()), 1e-5);
  EXPECT_EQ(result.verdict, lab::Verdict::corrected);
}

TEST(ByHand, best_single_head_of_L33) {
  // A kernel of two taps: the best non-negative weights by a search over their ratio.
  const lab::Result result = run_experiment("L33", {"kernel=2", "channels=3", "outputs=2"});
  Rng rng(1);
  drawn(3, 64, rng);
  const Rows weights = drawn(6, 2, rng, 1 / std::sqrt(6.0f));  // (O C, K)
  double total = 0, best = INFINITY;
  for (const std::vector<double>& each : weights) total += dot_of(each, each);
  for (int i = 0; i <= 20000; ++i) {
    const double angle = M_PI / 2 * i / 20000, a = std::cos(angle), b = std::sin(angle);
    double left = total;  // W = a W_0 + b W_1 for unit (a, b) explains |W|^2
    for (const std::vector<double>& each : weights) left -= std::pow(a * each[0] + b * each[1], 2);
    best = std::min(best, left);
  }
  EXPECT_NEAR(measured(result, "best single head: error, at least that of rank 1"), std::sqrt(best / total), 1e-4);
  EXPECT_EQ(published_of(result, "sum of a row of a band of ones"), 1);
  EXPECT_EQ(measured(result, "sum of a row of a band of ones"), 2);
}

// With one channel on both sides taps are numbers: those of one sign are multiples of one, which a single head can express.
TEST(OneHeadConvolution, one_head_expresses_taps_of_one_sign) {
  for (int seed = 1; seed <= 4; ++seed) {
    Rng rng(static_cast<uint64_t>(seed));
    drawn(1, 64, rng);
    const std::vector<double> taps = drawn(1, 2, rng, 1 / std::sqrt(2.0f))[0];
    const lab::Result result = run_experiment("L33", {"kernel=2", "channels=1", "outputs=1", "seed=" + std::to_string(seed)});
    const bool one_sign = taps[0] * taps[1] > 0;
    EXPECT_EQ(result.report.statement.find("positive multiples of one matrix") != std::string::npos, one_sign) << seed;
    if (one_sign) {
      EXPECT_NEAR(measured(result, "best single head: relative error of the output"), 0, 1e-5);
    }
  }
}

TEST(OneHeadConvolution, heads_that_blur_are_undecided) {
  const lab::Result result = run_experiment("L33", {"alpha=2"});
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_NE(lab::finding_of(result.report).find("At α = 2 the heads still blur"), std::string::npos);
}

TEST(ByHand, derivatives_of_L35) {
  const lab::Result result = run_experiment("L35", {"scale=0.02"});
  EXPECT_NEAR(measured(result, "largest derivative at z: e^-95"), std::exp(-95) + std::exp(-99) + std::exp(-101) + std::exp(-103), 1e-45);
  const std::vector<double> y = softmax_of({-0.06, 0.02, 2, 0.1, -0.02});
  const lab::Table& table = result.report.tables.at(2);
  for (size_t i = 0; i < 5; ++i)
    for (size_t j = 0; j < 5; ++j) EXPECT_NEAR(std::get<double>(table.rows[i][j + 1]), y[i] * ((i == j) - y[j]), 1e-6);
}

TEST(ByHand, padding_and_paths_of_L41) {
  const lab::Result result = run_experiment("L41");
  EXPECT_EQ(measured(result, "recurrent: path over the largest distance"), 64);
  EXPECT_EQ(measured(result, "attention to all: layers over the largest distance"), 1);
  EXPECT_EQ(measured(result, "attention to 1 on each side: layers over the largest distance"), 64);
  // From the table: 32 sequences padded to 64 tokens.
  const auto& rows = result.report.tables.at(0).rows;
  const double tokens = std::get<double>(rows[0][1]);
  EXPECT_EQ(std::get<double>(rows[0][2]), 32 * 64);
  EXPECT_EQ(std::get<double>(rows[1][1]), tokens * 16 * 16);
  EXPECT_EQ(std::get<double>(rows[2][2]), 2.0 * 32 * 64 * 64 * 16);
}

TEST(ByHand, same_arithmetic_of_L42) {
  const lab::Result result = run_experiment("L42", {"tokens=48", "width=32", "most_heads=8", "rounds=1"});
  for (const char* heads : {"1 head", "2 heads", "4 heads", "8 heads"})
    EXPECT_EQ(measured(result, std::string(heads) + ": multiply-adds, 2 N² D"), 2 * 48 * 48 * 32);
}

// Mean and variance of the change by integrating the logistic curve of the weight over the Gaussian score.
TEST(ByHand, moments_of_L44) {
  Rng rng(1);
  const Rows q = drawn(1, 16, rng), k = drawn(12, 16, rng), v = drawn(12, 16, rng);
  const std::vector<double> weights = weights_of(q[0], k, 0.25);
  const size_t j = static_cast<size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
  const double a = weights[j], tau = 0.3;
  double mean = 0, square = 0, length = 0;
  for (int i = -4000; i <= 4000; ++i) {
    const double z = i / 500.0, p = std::exp(-z * z / 2) / std::sqrt(2 * M_PI) / 500, s = tau * z;
    const double change = (a * std::exp(s) / (1 - a + a * std::exp(s)) - a) / (1 - a);  // in units of v_j - h
    mean += p * change, square += p * change * change;
  }
  for (size_t c = 0; c < 16; ++c) {
    double h = 0;
    for (size_t m = 0; m < 12; ++m) h += weights[m] * v[m][c];
    length += (v[j][c] - h) * (v[j][c] - h);
  }
  const lab::Result result = run_experiment("L44", {"noise=0.3"});
  EXPECT_NEAR(measured(result, "mean shift along v − h, τ²/2 a (1 − 2a)"), mean, 0.04 * std::abs(mean));
  EXPECT_NEAR(measured(result, "variance along v − h, τ² a² |v − h|²"), square * length, 0.04 * square * length);
}

// At large noise the expansion fails, and the report compares with the integral instead.
TEST(NoisyKeyDistribution, large_noise_follows_the_integral) {
  const lab::Result result = run_experiment("L44", {"noise=2"});
  EXPECT_NE(result.report.statement.find("too large for the second order"), std::string::npos);
  double mean = 0, all = 0;
  for (int i = -800; i <= 800; ++i) {
    const double z = i / 100.0, p = std::exp(-z * z / 2), weight = 1 / (1 + (1 - 0.5954) / 0.5954 * std::exp(-2 * z));
    all += p, mean += p * (weight - 0.5954) / (1 - 0.5954);
  }
  EXPECT_NEAR(measured(result, "mean shift along v − h, by integrating the weight over the noise"), mean / all, 0.03);
}

TEST(NoisyKeyDistribution, weights_near_one_half_have_no_shift_of_second_order) {
  int near_half = 0;
  for (int seed = 1; seed <= 12; ++seed) {
    const lab::Result result = run_experiment("L44", {"samples=4000", "keys=2", "seed=" + std::to_string(seed)});
    near_half += result.report.statement.find("close to 1/2") != std::string::npos;
  }
  EXPECT_GT(near_half, 0);
}

TEST(NoisyKeyDistribution, saturated_keys_are_undecided) {
  const lab::Result result = run_experiment("L44", {"beta=2", "samples=2000"});
  EXPECT_EQ(result.verdict, lab::Verdict::undecided);
  EXPECT_NE(lab::finding_of(result.report).find("the softmax is saturated"), std::string::npos);
}

TEST(ByHand, terms_of_L48) {
  Rng rng(1);
  const lab::Result result = run_experiment("L48", {"side=3", "width=8", "head_width=5", "query=2", "positions=random"});
  const Rows p = drawn(9, 8, rng, 0.7f), z = drawn(9, 8, rng);  // arguments are drawn in the order of the experiment's code
  const Rows wq = drawn(5, 8, rng, 1 / std::sqrt(8.0f)), wk = drawn(5, 8, rng, 1 / std::sqrt(8.0f));
  const auto project = [](const Rows& x, const Rows& w) {
    Rows out;
    for (const std::vector<double>& token : x) {
      out.emplace_back();
      for (const std::vector<double>& row : w) out.back().push_back(dot_of(token, row));
    }
    return out;
  };
  const auto square_of = [&](const Rows& a, const Rows& b) {
    double out = 0;
    for (const std::vector<double>& query : project(a, wq))
      for (const std::vector<double>& key : project(b, wk)) out += std::pow(dot_of(query, key), 2) / 5 / 81;
    return out;
  };
  const auto& rows = result.report.tables.at(0).rows;
  EXPECT_NEAR(std::get<double>(rows[0][1]), square_of(z, z), 1e-5);
  EXPECT_NEAR(std::get<double>(rows[1][1]), square_of(z, p), 1e-5);
  EXPECT_NEAR(std::get<double>(rows[2][1]), square_of(p, z), 1e-5);
  EXPECT_NEAR(std::get<double>(rows[3][1]), square_of(p, p), 1e-5);
  EXPECT_EQ(std::get<std::string>(rows[3][3]), "no");
}

TEST(ByHand, counts_of_L34) {
  const lab::Result result = run_experiment("L34", {"width=24", "heads=3"});
  EXPECT_EQ(measured(result, "slices: weights of queries, keys and values, 3 D²/H"), 3 * 3 * 8 * 8);
  EXPECT_EQ(measured(result, "projections: weights of queries, keys and values, 3 D²"), 3 * 24 * 24);
  EXPECT_EQ(measured(result, "slices: effect of the last channel on the first head"), 0);
  EXPECT_GT(measured(result, "projections: effect of the last channel on the first head"), 0.01);
}

}  // namespace
}  // namespace heed::test
