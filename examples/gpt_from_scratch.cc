// A GPT of modules and ops: the network, its training loop and its generation are all here. It reads characters of the numbers from one to
// 9999 in words and then writes some of its own.
//
//   gpt_from_scratch [STEPS]
//
// docs/layers.md describes the modules. heed::make_model() builds GPT-2 and others from a config, with a cache for fast generation.
#include <heed/data/text_data.h>
#include <heed/nn/encoder.h>
#include <heed/train/optimizer.h>

#include <cstdlib>
#include <iostream>

constexpr int64_t kLayers = 2, D = 64, kContext = 48, kBatch = 16;
const std::string kLetters = "\n -abcdefghijklmnopqrstuvwxyz";

struct Gpt {
  heed::Params params{1};  // 1: the seed of the initial values
  heed::Scope root{params, heed::initializer::gpt2(kLayers)};
  heed::Embedding letters{root / "letters", std::ssize(kLetters), D};
  heed::LearnedPositions positions{root / "positions", kContext, D};
  std::vector<heed::EncoderLayer> layers = {};
  heed::Norm norm{root / "norm", D};
  heed::Linear output{root / "output", D, std::ssize(kLetters)};

  Gpt() {
    const heed::LayerOptions options{
        .attention = {.width = D, .heads = 4}, .feed_forward = {.activation = heed::Activation::gelu}, .place = heed::NormPlace::before};
    for (int64_t i = 0; i < kLayers; ++i) layers.push_back(heed::make_encoder_layer(root / "layers" / i, options));
  }
  heed::Tensor operator()(const heed::Tensor& ids) const {  // (B, N) i64 -> logits (B, N, letters)
    heed::Tensor x = letters(ids) + positions(ids.size(1));
    for (const heed::EncoderLayer& layer : layers) x = layer(x, {.terms = {heed::Causal{}}});
    return output(norm(x));
  }
};

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 300;
  std::string text;
  for (int64_t number = 1; number < 10000; number += 7) text += heed::number_words(number, heed::NumberLanguage::english) + "\n";
  std::vector<int64_t> ids;
  for (const char letter : text) ids.push_back(static_cast<int64_t>(kLetters.find(letter)));

  const Gpt gpt;
  heed::Tensors parameters;
  for (const heed::Parameter& each : gpt.params.all()) parameters.push_back(each.tensor);
  heed::Adam adam({{parameters, 0.01f}}, {});
  heed::Rng rng(2);
  for (int step = 1; step <= steps; ++step) {
    std::vector<int64_t> inputs, targets;  // the target of a letter is the letter after it
    for (int64_t b = 0; b < kBatch; ++b) {
      const auto begin = ids.begin() + static_cast<int64_t>(rng.below(ids.size() - kContext - 1));
      inputs.insert(inputs.end(), begin, begin + kContext);
      targets.insert(targets.end(), begin + 1, begin + kContext + 1);
    }
    const heed::Tensor logits = gpt(heed::Tensor::from(inputs, {kBatch, kContext}, heed::kCpu));
    const heed::Tensor loss = heed::cross_entropy(logits, heed::Tensor::from(targets, {kBatch, kContext}, heed::kCpu));
    heed::backward(loss);
    adam.step(3e-3f);
    adam.zero_grad();
    if (step % 50 == 0 || step == 1) std::cout << "step " << step << ", loss " << loss.item() << std::endl;
  }

  const heed::NoGrad no_grad;
  std::vector<int64_t> written{static_cast<int64_t>(kLetters.find('\n'))};
  for (int i = 0; i < 200; ++i) {
    const int64_t N = std::min(std::ssize(written), kContext);
    const std::vector<int64_t> context(written.end() - N, written.end());
    const heed::Tensor logits = gpt(heed::Tensor::from(context, {1, N}, heed::kCpu));
    const heed::Tensor noise = heed::random_uniform({std::ssize(kLetters)}, 1e-6f, 1, rng, heed::kCpu);
    const heed::Tensor gumbel = heed::log(heed::log(noise) * -1.f) * -1.f;  // the argmax of logits plus this is a sample of the softmax
    written.push_back(heed::argmax(heed::reshape(heed::slice(logits, 1, N - 1, N), {-1}) * 1.5f + gumbel).item<int64_t>());
    std::cout << kLetters[static_cast<size_t>(written.back())];
  }
  std::cout << '\n';
}
