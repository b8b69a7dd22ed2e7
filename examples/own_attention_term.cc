// An attention term of your own, with parameters that train: head h prefers keys at a distance of center[h] from the query,
//
//   score(i, j) += -sharpness[h] (i - j - center[h])^2
//
// Any formula of ops will do: its result, which broadcasts to (B, H, N, M), becomes the term Bias, and gradients flow through it. Here the
// right answer is always three tokens back, and the head learns that distance.
//
//   own_attention_term
//
// docs/attention.md lists the terms that heed has. CONTRIBUTING.md says how a term gets into the fused kernels, where it needs no N x M
// map.
#include <heed/attention/attention.h>
#include <heed/ops/ops.h>
#include <heed/train/optimizer.h>

#include <iostream>

// center, sharpness: (H, 1, 1) -> (H, N, N)
heed::Tensor distance_term(const heed::Tensor& center, const heed::Tensor& sharpness, int64_t N) {
  std::vector<float> distances;
  for (int64_t i = 0; i < N; ++i)
    for (int64_t j = 0; j < N; ++j) distances.push_back(static_cast<float>(i - j));
  const heed::Tensor off = heed::Tensor::from(distances, {1, N, N}, heed::kCpu) - center;
  return heed::softplus(sharpness) * off * off * -1.f;
}

int main() {
  constexpr int64_t B = 4, H = 1, N = 32, E = 8, kBack = 3;
  heed::Rng rng(1);
  heed::Tensor center = heed::Tensor::full({H, 1, 1}, 1, heed::kCpu), sharpness = heed::Tensor::full({H, 1, 1}, -2, heed::kCpu);
  center.require_grad();
  sharpness.require_grad();
  heed::Adam adam({{{center, sharpness}}}, {});

  for (int step = 1; step <= 200; ++step) {
    const heed::Tensor v = heed::random_normal({B, H, N, E}, 0, 1, rng, heed::kCpu);
    const heed::Tensor term = heed::reshape(distance_term(center, sharpness, N), {1, H, N, N});
    heed::AttentionOptions options;
    options.beta = 0.f;  // scores come from the terms alone; leave it out to add them to q.k / sqrt(D)
    options.terms = {heed::Causal{}, heed::Bias{term}};
    const heed::Tensor out = heed::attention(v, v, v, options);  // (B, H, N, E)
    // The target of token i is token i - 3.
    const heed::Tensor loss = heed::mean_squared_error(heed::slice(out, 2, kBack, N), heed::slice(v, 2, 0, N - kBack));
    heed::backward(loss);
    adam.step(0.05f);
    adam.zero_grad();
    if (step % 40 == 0)
      std::cout << "step " << step << ": loss " << loss.item() << ", center " << center.item() << ", sharpness "
                << heed::softplus(sharpness).item() << '\n';
  }
  const bool found = std::abs(center.item() - kBack) < 0.2f;
  std::cout << (found ? "The head looks three tokens back.\n" : "The head has not learned the distance.\n");
  return found ? 0 : 1;
}
