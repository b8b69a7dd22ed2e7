// Every folder of tests/fixtures: the model has the same outputs as in `transformers`. marian-translate has its own test,
// marian_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "heed/core/parallel.h"
#include "heed/models/parity.h"
#include "tests/io/files.h"
#include "tests/models/fixtures.h"

namespace heed::test {
namespace {

std::vector<std::string> fixtures() {
  std::vector<std::string> names = fixtures_with("io.safetensors");
  std::erase(names, "marian-translate");
  return names;
}

class Parity : public testing::TestWithParam<std::string> {};

TEST_P(Parity, every_output_is_the_same) {
  const Path folder = kFixtures / GetParam();
  const std::vector<Difference> all = compare(load(folder), folder / "io.safetensors", 1e-5);
  EXPECT_FALSE(all.empty());
  for (const Difference& each : all)
    EXPECT_TRUE(each.within) << each.name << ": " << each.absolute << " absolute, " << each.relative << " relative " << each.problem;
}

TEST_P(Parity, packed_weights_give_the_same) {
  const Path folder = kFixtures / GetParam();
  for (const Difference& each : compare(load(folder, {.weights = Weights::packed}), folder / "io.safetensors", 1e-5))
    EXPECT_TRUE(each.within) << each.name << ": " << each.relative << " relative " << each.problem;
}

// The networks are tiny and random, so rounding errors do not average out: only the direction of outputs is compared. Machines
// without VNNI round weights to 63 steps instead of 127.
TEST_P(Parity, int8_gives_nearly_the_same) {
  const Path folder = kFixtures / GetParam();
  const Safetensors io = Safetensors::open(folder / "io.safetensors");
  for (const auto& [name, tensor] : load(folder, {.weights = Weights::int8})(inputs_in(io))) {
    if (!io.contains("out." + name) || tensor.count() < 20) continue;
    const std::vector<float> x = tensor.to_vector<float>(), y = io.tensor("out." + name).to_vector<float>();
    double both = 0, first = 0, second = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      both += static_cast<double>(x[i]) * y[i];
      first += static_cast<double>(x[i]) * x[i];
      second += static_cast<double>(y[i]) * y[i];
    }
    EXPECT_GE(both / std::sqrt(first * second), 0.99) << name;
  }
}

TEST_P(Parity, every_bit_is_the_same_with_any_number_of_threads) {
  const NoGrad no_grad;
  const Path folder = kFixtures / GetParam();
  const Safetensors io = Safetensors::open(folder / "io.safetensors");
  const TensorMap inputs = inputs_in(io);
  const Model model = load(folder);
  const int before = thread_count();
  TensorMap first;
  for (const int threads : {1, 2, 7}) {
    set_thread_count(threads);
    const TensorMap out = model(inputs);
    if (threads == 1) first = out;
    for (const auto& [name, tensor] : out) expect_same(tensor, first.at(name));
  }
  set_thread_count(before);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Parity, testing::ValuesIn(fixtures()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace heed::test
