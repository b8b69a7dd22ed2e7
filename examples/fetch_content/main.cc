// A project of its own that uses heed's tensors: see CMakeLists.txt.
#include <heed/attention/attention.h>
#include <heed/ops/ops.h>

#include <iostream>

int main() {
  heed::Rng rng(1);
  heed::Tensor q = heed::random_normal({1, 2, 6, 8}, 0, 1, rng, heed::kCpu);  // (B, H, N, D)
  q.require_grad();
  const heed::Tensor out = heed::attention(q, q, q, {.terms = {heed::Causal{}, heed::Window{.before = 2}}});
  heed::backward(heed::sum(out * out));
  std::cout << "attention of shape " << out.shape() << ", gradient of shape " << q.grad().shape() << '\n';
}
