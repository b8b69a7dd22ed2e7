// Optimizers against their formulas in double precision, over several steps.
#include "heed/train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/core/parallel.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

constexpr float kRate = 0.05f;

// Three parameters, one larger than a chunk, with gradients that change from step to step.
struct Fixture {
  Tensors parameters;
  std::vector<std::vector<double>> expected;

  Fixture() {
    Rng rng(1);
    for (const Shape& shape : {Shape{3}, Shape{20000}, Shape{7, 5}}) {
      parameters.push_back(random_normal(shape, 0, 1, rng, kCpu).require_grad());
      const auto values = parameters.back().to_vector<float>();
      expected.emplace_back(values.begin(), values.end());
    }
  }

  std::vector<std::vector<double>> make_gradients(int step) const {
    Rng rng(static_cast<uint64_t>(100 + step));
    std::vector<std::vector<double>> all;
    for (const Tensor& p : parameters) {
      p.zero_grad();
      const Tensor g = random_normal(p.shape(), 0, 1, rng, kCpu);
      backward(sum(p * g));
      const auto values = g.to_vector<float>();
      all.emplace_back(values.begin(), values.end());
    }
    return all;
  }

  void check() const {
    for (size_t k = 0; k < parameters.size(); ++k) {
      const auto got = parameters[k].to_vector<float>();
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[k][i], 2e-6 * (1 + std::abs(expected[k][i]))) << k << " " << i;
    }
  }
};

TEST(Sgd, follows_its_formula) {
  for (const bool nesterov : {false, true})
    for (const double momentum : {0.0, 0.9}) {
      Fixture f;
      Sgd sgd({{f.parameters, 0.01f}}, {static_cast<float>(momentum), nesterov});
      std::vector<std::vector<double>> velocity;
      for (const auto& p : f.expected) velocity.emplace_back(p.size(), 0.0);
      for (int step = 0; step < 4; ++step) {
        const auto gradients = f.make_gradients(step);
        sgd.step(kRate);
        for (size_t k = 0; k < f.expected.size(); ++k)
          for (size_t i = 0; i < f.expected[k].size(); ++i) {
            const double g = gradients[k][i] + 0.01f * f.expected[k][i];
            double& v = velocity[k][i];
            v = momentum * v + g;
            f.expected[k][i] -= kRate * (nesterov && momentum > 0 ? g + momentum * v : v);
          }
      }
      f.check();
    }
}

TEST(Adam, follows_its_formula) {
  for (const bool decoupled : {true, false}) {
    Fixture f;
    Adam adam({{f.parameters, 0.1f}}, {.decoupled = decoupled});
    std::vector<std::vector<double>> m, v;
    for (const auto& p : f.expected) {
      m.emplace_back(p.size(), 0.0);
      v.emplace_back(p.size(), 0.0);
    }
    for (int step = 0; step < 4; ++step) {
      const auto gradients = f.make_gradients(step);
      adam.step(kRate);
      for (size_t k = 0; k < f.expected.size(); ++k)
        for (size_t i = 0; i < f.expected[k].size(); ++i) {
          double& w = f.expected[k][i];
          const double g = gradients[k][i] + (decoupled ? 0 : 0.1f * w), t = step + 1;
          m[k][i] = 0.9 * m[k][i] + 0.1 * g;
          v[k][i] = 0.999 * v[k][i] + 0.001 * g * g;
          if (decoupled) w -= kRate * 0.1f * w;
          w -= kRate * (m[k][i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[k][i] / (1 - std::pow(0.999, t))) + 1e-8);
        }
    }
    f.check();
  }
}

TEST(Optimizer, leaves_parameters_without_a_gradient_alone) {
  const Tensor used = Tensor::ones({2}, kCpu).require_grad(), unused = Tensor::ones({2}, kCpu).require_grad();
  Adam adam({{{used}, 0}, {{unused}, 0.5f}}, {});
  backward(sum(used));
  adam.step(0.1f);
  EXPECT_NE(used.to_vector<float>()[0], 1);
  EXPECT_EQ(unused.to_vector<float>()[0], 1);
}

TEST(Clip, scales_all_gradients_by_their_common_norm) {
  Fixture f;
  const auto gradients = f.make_gradients(0);
  double total = 0;
  for (const auto& g : gradients)
    for (double x : g) total += x * x;
  EXPECT_NEAR(clip_gradients(f.parameters, 1e9f), std::sqrt(total), 1e-5 * std::sqrt(total));
  EXPECT_NEAR(f.parameters[0].grad().to_vector<float>()[0], gradients[0][0], 1e-7);
  clip_gradients(f.parameters, 1);
  EXPECT_NEAR(f.parameters[2].grad().to_vector<float>()[3], gradients[2][3] / std::sqrt(total), 1e-6);
  EXPECT_NEAR(clip_gradients(f.parameters, 10), 1, 1e-5);
}

// A step that reads the norm and scales gradients itself gives the bits of scaled gradients, and does not change the gradients.
template <class Optimizer, class Options>
void check_clipped_steps(const Options& options) {
  for (const float limit : {1e-3f, 1.0f, 1e9f}) {
    Fixture inside, before;
    Optimizer one({{inside.parameters, 0.1f}}, options), other({{before.parameters, 0.1f}}, options);
    for (int step = 0; step < 3; ++step) {
      inside.make_gradients(step);
      before.make_gradients(step);
      const std::vector<float> gradient = inside.parameters[1].grad().to_vector<float>();
      const Tensor norm = gradient_norm(inside.parameters);
      one.step(kRate, {.norm = norm, .limit = limit});
      EXPECT_EQ(clip_gradients(before.parameters, limit), norm.item());
      other.step(kRate);
      EXPECT_EQ(inside.parameters[1].grad().to_vector<float>(), gradient);
    }
    for (size_t k = 0; k < inside.parameters.size(); ++k)
      EXPECT_EQ(inside.parameters[k].to_vector<float>(), before.parameters[k].to_vector<float>()) << limit;
  }
}

TEST(Clip, inside_a_step_gives_the_same_bits) {
  check_clipped_steps<Adam>(AdamOptions{});
  check_clipped_steps<Adam>(AdamOptions{.decoupled = false});
  check_clipped_steps<Sgd>(SgdOptions{.momentum = 0.9f, .nesterov = true});
  check_clipped_steps<Sgd>(SgdOptions{});
}

TEST(Clip, nothing_changes_where_the_norm_is_not_finite) {
  Fixture f;
  f.make_gradients(0);
  const Tensor average = Tensor::zeros({3}, DType::f32, kCpu);
  Adam adam({{f.parameters, 0.1f}}, {});
  Sgd sgd({{f.parameters, 0.1f}}, {.momentum = 0.9f});
  for (const float bad : {NAN, HUGE_VALF}) {
    const Tensor norm = Tensor::full({}, static_cast<double>(bad), DType::f32, kCpu);
    adam.step(kRate, {.norm = norm});
    sgd.step(kRate, {.norm = norm});
    update_averages({average}, {f.parameters[0]}, 0.5f, norm);
  }
  for (const Tensors& state : {adam.state(), sgd.state(), Tensors{average}})
    for (const Tensor& tensor : state)
      for (const float value : tensor.to_vector<float>()) ASSERT_EQ(value, 0);
  f.check();
}

TEST(Optimizer, is_bit_equal_for_1_2_and_7_threads) {
  const auto run = [](int threads) {
    set_thread_count(threads);
    Fixture f;
    Adam adam({{f.parameters, 0.1f}}, {});
    for (int step = 0; step < 3; ++step) {
      f.make_gradients(step);
      clip_gradients(f.parameters, 0.5f);
      adam.step(kRate);
    }
    return f.parameters[1].to_vector<float>();
  };
  const int before = thread_count();
  const auto one = run(1), two = run(2), seven = run(7);
  set_thread_count(before);
  EXPECT_EQ(one, two);
  EXPECT_EQ(one, seven);
}

}  // namespace
}  // namespace heed
