// Autograd: accumulation, order, no recursion and no leaks, hooks and checkpoints.
#include "heed/core/autograd.h"

#include <gtest/gtest.h>

#include "heed/ops/ops.h"
#include "tests/expect_error.h"

namespace heed {
namespace {

Tensor leaf(std::vector<float> values) {
  const auto n = static_cast<int64_t>(values.size());
  return Tensor::from(values, {n}, kCpu).require_grad();
}

TEST(Autograd, accumulates_over_paths_and_calls) {
  const Tensor x = leaf({2, 3});
  backward(sum(x * x + x));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{5, 7}));
  backward(sum(x * 2));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{7, 9}));
  x.zero_grad();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Autograd, leaves_do_not_share_gradients) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  backward(a + b, Tensor::ones({2}, kCpu));
  EXPECT_FALSE(a.grad().shares_data_with(b.grad()));
}

TEST(Autograd, handles_chains_of_100000_ops) {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = y + x;
  backward(y);
  EXPECT_EQ(x.grad().item(), 100001);
  Tensor unused = x;
  for (int i = 0; i < 100000; ++i) unused = scale(unused, 1);  // freed without a backward
}

TEST(Autograd, frees_activations_that_are_not_needed) {
  const Tensor x = Tensor::ones({1 << 18}, kCpu).require_grad();
  const int64_t start = memory_use(kCpu).in_use;
  {
    Tensor y = scale(x, 2);  // its gradient needs no activation
    for (int i = 0; i < 10; ++i) y = scale(y, 2);
    EXPECT_LE(memory_use(kCpu).in_use - start, 1 << 20);  // only the last result is alive
    const Tensor z = exp(scale(y, 0));
    const int64_t held = memory_use(kCpu).in_use;
    backward(sum(z));
    EXPECT_LE(memory_use(kCpu).in_use, held + (1 << 20) + 4096);  // backward frees what it used; the leaf's gradient is new
  }
  x.zero_grad();
  EXPECT_EQ(memory_use(kCpu).in_use, start);
}

TEST(Autograd, frees_the_graph_unless_it_is_kept) {
  const Tensor x = leaf({3});
  const Tensor y = x * x;
  backward(y, {}, true);
  backward(y);
  EXPECT_EQ(x.grad().item(), 12);
  expect_error([&] { backward(y); }, "was freed by an earlier backward");
}

TEST(Autograd, drops_pending_gradients_after_an_error) {
  const Tensor x = leaf({2});
  bool fails = true;
  const Tensor older = scale(x, 5), fragile = record({"fragile"}, scale(x, 1).detach(), {x}, [&fails](const Tensor&g) {
                                      check(!fails, "fragile: failed");
                                      return Grads{g};
                                    });
  const Tensor z = fragile * 3 + older;
  expect_error([&] { backward(z, {}, true); }, "fragile: failed");
  fails = false;
  backward(z);
  EXPECT_EQ(x.grad().item(), 8);
}

TEST(Autograd, converts_the_seed_to_the_dtype_of_the_root) {
  const Tensor x = Tensor::ones({3}, DType::bf16, kCpu).require_grad();
  backward(scale(x, 2), Tensor::full({3}, 5, kCpu));
  EXPECT_EQ(x.grad().dtype(), DType::bf16);
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{10, 10, 10}));
}

TEST(Autograd, reports_invalid_arguments) {
  expect_error([] { backward(Tensor::ones({1}, kCpu)); }, "no history");
  expect_error([] { backward(leaf({1, 2})); }, "needs a seed");
  expect_error([] { backward(leaf({1, 2}), Tensor::ones({3}, kCpu)); }, "the seed has shape (3), the tensor (2)");
  expect_error([] { Tensor::zeros({1}, DType::i64, kCpu).require_grad(); }, "floating numbers only");
  expect_error([] { scale(leaf({1}), 2).require_grad(); }, "detach it first");
}

TEST(Autograd, no_grad_and_detach_record_nothing) {
  const Tensor x = leaf({1});
  {
    const NoGrad quiet;
    EXPECT_FALSE((x * x).needs_grad());
  }
  EXPECT_TRUE((x * x).needs_grad());
  EXPECT_FALSE((x.detach() * x.detach()).needs_grad());
  EXPECT_TRUE(x.detach().shares_data_with(x));
}

TEST(Autograd, calls_hooks_with_accumulated_gradients) {
  const Tensor x = leaf({2});
  const Tensor y = x * x, z = y * 3 + y;
  std::vector<float> seen;
  y.on_gradient([&](const Tensor& g) { seen.push_back(g.item()); });
  x.on_gradient([&](const Tensor& g) { seen.push_back(g.item()); });
  backward(z);
  EXPECT_EQ(seen, (std::vector<float>{4, 16}));  // the sum over all uses, once for each tensor
}

TEST(Autograd, calls_hooks_of_leaves_once_per_backward) {
  const Tensor x = leaf({2});
  std::vector<float> seen;
  x.on_gradient([&](const Tensor& g) { seen.push_back(g.item()); });
  backward(x * 3 + x * 4);
  EXPECT_EQ(seen, (std::vector<float>{7}));
}

Tensor deep(const Tensor& x, const Tensor& w) {
  Tensor y = x;
  for (int i = 0; i < 8; ++i) y = tanh(y * w);
  return y;
}

TEST(Checkpoint, gives_the_same_gradients_with_less_memory) {
  Rng rng(3);
  const Tensor x = random_normal({1 << 16}, 0, 1, rng, kCpu).require_grad(), w = random_normal({1 << 16}, 0, 1, rng, kCpu).require_grad();
  reset_peak_memory(kCpu);
  const int64_t start = memory_use(kCpu).in_use;
  const Tensor plain = deep(x, w);
  const int64_t plain_bytes = memory_use(kCpu).in_use - start;
  backward(plain, Tensor::ones(plain.shape(), kCpu));
  const auto dx = x.grad().to_vector<float>(), dw = w.grad().to_vector<float>(), value = plain.to_vector<float>();
  x.zero_grad();
  w.zero_grad();

  const int64_t again = memory_use(kCpu).in_use;
  const Tensor saved = checkpoint([w](const Tensors& in) { return deep(in[0], w); }, {x});  // w is captured
  EXPECT_LE((memory_use(kCpu).in_use - again) * 4, plain_bytes);
  backward(saved, Tensor::ones(saved.shape(), kCpu));
  EXPECT_EQ(saved.to_vector<float>(), value);
  EXPECT_EQ(x.grad().to_vector<float>(), dx);
  EXPECT_EQ(w.grad().to_vector<float>(), dw);
}

TEST(Checkpoint, recomputes_with_the_same_random_numbers) {
  const Tensor x = Tensor::ones({257}, kCpu).require_grad();
  Rng rng(7);
  const Tensor y = checkpoint([](const Tensors& in, Rng& r) { return dropout(in[0], 0.5f, r); }, {x}, rng);
  EXPECT_EQ(rng.next_stream(), 1u);
  const Tensor other = dropout(x.detach(), 0.5f, rng);
  backward(y, Tensor::ones({257}, kCpu));
  EXPECT_EQ(x.grad().to_vector<float>(), y.to_vector<float>());
  EXPECT_NE(other.to_vector<float>(), y.to_vector<float>());
  EXPECT_EQ(rng.next_stream(), 2u);  // recomputation does not advance the generator
}

TEST(Checkpoint, supports_parameters_captured_by_the_function) {
  const Tensor w = leaf({3});
  const Tensor y = checkpoint([w](const Tensors& in) { return in[0] * w; }, {Tensor::full({1}, 2, kCpu)});
  backward(y);
  EXPECT_EQ(w.grad().item(), 2);
}

TEST(Autograd, recomputes_cheap_outputs_instead_of_saving_them) {
  Rng rng(1);
  const int64_t rows = 1 << 10, D = 64, wide = 256;
  const Tensor x = random_normal({rows, D}, 0, 1, rng, kCpu).require_grad(), w = Tensor::ones({D}, kCpu).require_grad(),
               b = Tensor::zeros({D}, kCpu);
  const Tensor up = random_normal({wide, D}, 0, 0.1f, rng, kCpu).require_grad(),
               down = random_normal({D, wide}, 0, 0.1f, rng, kCpu).require_grad();
  const auto run = [&] { return sum(linear(dropout(linear(layer_norm(x, w, b), up, {}, Activation::gelu), 0.1f, rng), down)); };
  run();  // allocations that only the first call makes
  const int64_t start = memory_use(kCpu).in_use;
  const Tensor loss = run();
  // The only wide tensor that is kept is the output of the first product before its activation; the norm keeps two numbers per row.
  EXPECT_LE(memory_use(kCpu).in_use - start, rows * (wide + 2) * 4 + (1 << 14));
}

TEST(Autograd, recomputes_outputs_in_each_of_two_backward_passes) {
  Rng rng(2);
  const Tensor x = random_normal({5, 7}, 0, 1, rng, kCpu).require_grad(), w = random_normal({3, 7}, 0, 1, rng, kCpu).require_grad();
  const Tensor loss = sum(linear(linear(x, w, {}, Activation::gelu), Tensor::ones({2, 3}, kCpu).require_grad()));
  backward(loss, {}, true);
  const std::vector<float> once = w.grad().to_vector<float>();
  backward(loss);
  const std::vector<float> twice = w.grad().to_vector<float>();
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(twice[i], 2 * once[i]);
}

}  // namespace
}  // namespace heed
