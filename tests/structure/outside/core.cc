#include <heed/ops/ops.h>

#include <iostream>

int main() {
  const heed::Tensor x = heed::Tensor::from(std::vector<float>{1, -2, 3}, {3}, heed::kCpu);
  heed::Tensor w = heed::Tensor::from(std::vector<float>{0.5, -1, -1}, {3}, heed::kCpu);
  w.require_grad();

  const heed::Tensor loss = heed::sum(heed::relu(w * x));
  heed::backward(loss);

  std::cout << "loss " << loss.item() << ", gradient of w";
  for (float g : w.grad().to_vector<float>()) std::cout << ' ' << g;
  std::cout << '\n';
}
