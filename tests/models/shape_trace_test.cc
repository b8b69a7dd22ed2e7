// Shapes of intermediates, for every architecture.
#include "heed/models/shape_trace.h"

#include <gtest/gtest.h>

#include "heed/models/architecture.h"
#include "tests/models/fixtures.h"

namespace heed::test {
namespace {

const ShapeRecord& record_of(const std::vector<ShapeRecord>& records, const std::string& name) {
  for (const ShapeRecord& each : records)
    if (each.name == name) return each;
  static const ShapeRecord none{};
  ADD_FAILURE() << "no shape of " << name;
  return none;
}

// The sizes of BERT base: five tokens, 12 heads of width 64.
TEST(ShapeTrace, five_tokens_in_twelve_heads) {
  const Model model = make_model({{"architectures", {"BertModel"}},
                                  {"hidden_size", 768},
                                  {"num_attention_heads", 12},
                                  {"num_hidden_layers", 1},
                                  {"intermediate_size", 3072},
                                  {"vocab_size", 99}},
                                 {.names = {.shapes_only = true}});
  const std::vector<ShapeRecord> records = shapes_of_example(model, {.tokens = 5});
  const std::string attention = "encoder.layer.0.attention.";
  EXPECT_EQ(record_of(records, "embeddings.word_embeddings").shape, (Shape{1, 5, 768}));
  EXPECT_EQ(record_of(records, "embeddings.word_embeddings").from, "rows of (99, 768)");
  for (const char* name : {"q", "k", "v", "z"}) EXPECT_EQ(record_of(records, attention + name).shape, (Shape{1, 12, 5, 64})) << name;
  EXPECT_EQ(record_of(records, attention + "map").shape, (Shape{1, 12, 5, 5}));
  EXPECT_EQ(record_of(records, attention + "joined").shape, (Shape{1, 5, 768}));
  EXPECT_EQ(record_of(records, attention + "output.dense").from, "(1, 5, 768), weight (768, 768)");
  EXPECT_EQ(record_of(records, "encoder.layer.0.intermediate.dense").shape, (Shape{1, 5, 3072}));
  EXPECT_EQ(record_of(records, "pooler.dense").shape, (Shape{1, 768}));
}

TEST(ShapeTrace, every_architecture_has_shapes_that_fit) {
  for (const std::string& name : fixtures_with("config.json")) {
    const Model model = load(kFixtures / name, {.names = {.allow_missing = {""}, .allow_unused = {""}, .shapes_only = true}});
    const std::vector<ShapeRecord> records = shapes_of_example(model, {.batch = 2});
    int64_t attention = 0;
    for (size_t i = 0; i + 4 < records.size(); ++i) {
      if (!records[i].name.ends_with(".q") || !records[i + 3].name.ends_with(".map")) continue;
      ++attention;
      const Shape &q = records[i].shape, &k = records[i + 1].shape, &v = records[i + 2].shape;
      EXPECT_EQ(records[i + 3].shape, (Shape{2, q[1], q[2], k[2]})) << name;
      EXPECT_EQ(records[i + 4].shape, (Shape{2, q[1], q[2], v[3]})) << name;
    }
    EXPECT_EQ(attention == 0, model.family().model_type == "resnet") << name;
    for (const ShapeRecord& each : records) EXPECT_FALSE(each.name.empty() || each.from.empty()) << name << ": " << each.name;
  }
}

// Channel and linear attention have no map of tokens.
TEST(ShapeTrace, attention_without_a_map) {
  Json config{{"architectures", {"ViTForImageClassification"}},
              {"hidden_size", 12},
              {"num_attention_heads", 2},
              {"num_hidden_layers", 1},
              {"intermediate_size", 8},
              {"image_size", 16},
              {"patch_size", 4},
              {"num_labels", 3},
              {"heed", {{"attention", "linear"}}}};
  const std::vector<ShapeRecord> records = shapes_of_example(make_model(config), {});
  const std::string attention = "vit.encoder.layer.0.attention.";
  EXPECT_EQ(record_of(records, attention + "z").shape, (Shape{1, 2, 17, 6}));
  EXPECT_EQ(record_of(records, attention + "z").from, "q, k, v, without a map");
  for (const ShapeRecord& each : records) EXPECT_FALSE(each.name.ends_with(".map"));
}

}  // namespace
}  // namespace heed::test
