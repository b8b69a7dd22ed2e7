// The fixture marian-translate. Its outputs were computed with modified position tables (normal noise of deviation 0.02), which
// Marian checkpoints do not contain: with this checkpoint `transformers` itself gives other numbers (logits off by 4%). The tables
// are recovered from the first hidden states; with them in the checkpoint, all other outputs must be equal.
#include <gtest/gtest.h>

#include <cmath>

#include "heed/models/parity.h"
#include "heed/nn/positions.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

const Path kFixture = fixture("marian-translate");

// states: (B, N, D), tokens: (B, N), words: (V, D) -> (P, D), the rows from N on as computed
Tensor recovered_table(const Tensor& states, const Tensor& tokens, const Tensor& words, int64_t P) {
  const int64_t N = states.size(1), D = states.size(2);
  const Tensor added = slice(states - embedding(words, tokens) * std::sqrt(static_cast<float>(D)), 0, 0, 1);
  return concat({reshape(added, {N, D}), slice(sinusoidal_positions(P, D, Pairing::halves), 0, N, P)}, 0);
}

TEST(MarianTranslate, is_the_same_with_its_original_positions) {
  const Folder folder;
  const Safetensors io = Safetensors::open(kFixture / "io.safetensors"), weights = Safetensors::open(kFixture / "model.safetensors");
  NamedTensors tensors;
  for (const std::string& name : weights.names()) tensors.emplace_back(name, weights.tensor(name));
  const Tensor words = weights.tensor("model.shared.weight");
  tensors.emplace_back("model.encoder.embed_positions.weight",
                       recovered_table(io.tensor("out.encoder_hidden_states.0"), io.tensor("in.input_ids"), words, 64));
  tensors.emplace_back("model.decoder.embed_positions.weight",
                       recovered_table(io.tensor("out.decoder_hidden_states.0"), io.tensor("in.decoder_input_ids"), words, 64));
  write_safetensors(folder / "model.safetensors", tensors);
  std::filesystem::copy(kFixture / "config.json", folder.path());
  for (const Difference& each : compare(load(folder.path()), kFixture / "io.safetensors", 1e-5))
    EXPECT_TRUE(each.within) << each.name << ": " << each.absolute << " absolute, " << each.relative << " relative " << each.problem;
}

}  // namespace
}  // namespace heed::test
