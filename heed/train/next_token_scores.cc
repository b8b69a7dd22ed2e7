#include "heed/train/next_token_scores.h"

#include <cmath>

#include "heed/dist/split_work.h"
#include "heed/ops/ops.h"

namespace heed {

Evaluation evaluate_next_tokens(const Model& model, const Batches& batches,
                                const std::function<TensorMap(std::span<const int64_t> samples)>& inputs) {
  const auto score_batch = [&](const std::vector<int64_t>& which) -> std::vector<double> {
    const TensorMap batch = inputs(which), out = model(batch);
    const std::vector<int64_t> labels = batch.at("labels").to_vector<int64_t>(), guesses = argmax(out.at("logits")).to_vector<int64_t>();
    double tokens = 0, right = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      tokens += labels[i] != kNoLabel;
      right += labels[i] == guesses[i];
    }
    return {static_cast<double>(out.at("loss").item()) * tokens, right, tokens};
  };
  double loss = 0;
  RunningMean right;
  split_work(
      world(), std::ssize(batches), [&](int64_t i) { return bytes_of_numbers(score_batch(batches[static_cast<size_t>(i)])); },
      [&](int64_t, const std::string& sums) {
        const std::vector<double> numbers = numbers_in<double>(sums);
        loss += numbers[0];
        right.add({numbers[1], numbers[2]});
      });
  loss /= right.count;
  return {.figures = {{"loss", loss}, {"perplexity", std::exp(loss)}, {"accuracy", right.sum / right.count}}};
}

}  // namespace heed
