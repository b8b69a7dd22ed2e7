// Beams find what those of `transformers` find, on every language model of tests/fixtures.
#include <gtest/gtest.h>

#include "heed/core/parallel.h"
#include "heed/models/beam.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

const Path kFixtures = Path(HEED_SOURCE_DIR) / "tests/fixtures";

std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures))
    if (std::filesystem::exists(entry.path() / "beams.safetensors")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

struct Fixture {
  explicit Fixture(const std::string& name) : model(load(kFixtures / name)), file(Safetensors::open(kFixtures / name / "beams.safetensors")) {
    for (const std::string& each : file.names())
      if (each.starts_with("in.")) inputs[each.substr(3)] = file.tensor(each);
  }
  // generation_config.json with the keys of a case in place of its own.
  GenerationOptions options(const std::string& keys) const {
    Json json = model.generation();
    json.update(Json::parse(keys));
    return generation_options(json, "case");
  }
  Model model;
  Safetensors file;
  Named inputs;
};

class BeamParity : public testing::TestWithParam<std::string> {};

TEST_P(BeamParity, tokens_and_scores_are_the_same) {
  const Fixture fixture(GetParam());
  EXPECT_GE(fixture.file.metadata().size(), 9u);
  for (const auto& [number, keys] : fixture.file.metadata()) {
    SCOPED_TRACE(keys);
    const Beams found = beam_search(fixture.model, fixture.inputs, fixture.options(keys));
    expect_same(found.tokens, converted(fixture.file.tensor(number + ".tokens"), DType::i64));
    const std::vector<float> scores = fixture.file.tensor(number + ".scores").to_vector<float>();
    ASSERT_EQ(found.scores.size(), scores.size());
    for (size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(found.scores[i], scores[i], 1e-5f * (1 + std::abs(scores[i])));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, BeamParity, testing::ValuesIn(fixtures()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace heed::test
