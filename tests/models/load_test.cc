// Loading and saving folders: errors and their messages, aliases of parameters, round trips.
#include <gtest/gtest.h>

#include <set>

#include "heed/models/model.h"
#include "heed/models/parity.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/models/fixture_copy.h"

namespace heed::test {
namespace {

TEST(Load, refuses_what_is_not_there) {
  expect_refused([] { load("/nowhere"); }, "/nowhere: there is no such folder");
  const FixtureCopy copy("vit-classify");
  std::filesystem::remove(copy / "model.safetensors");
  copy.refuses("found neither model.safetensors nor model.safetensors.index.json");
  put(copy / "pytorch_model.bin", "x");
  copy.refuses("pytorch_model.bin: pickle files can execute code");
  copy.refuses("from transformers import ViTForImageClassification as M");
  std::filesystem::remove(copy / "config.json");
  copy.refuses("config.json: there is no such file");
}

TEST(Load, refuses_damaged_files) {
  const FixtureCopy copy("vit-classify");
  const std::string whole = get(copy / "model.safetensors");
  put(copy / "model.safetensors", whole.substr(0, whole.size() - 100));
  copy.refuses("model.safetensors: ");
  put(copy / "model.safetensors", whole);
  put(copy / "config.json", "{\"architectures\": [");
  copy.refuses("config.json: ");
  put(copy / "config.json", "[]");
  copy.refuses("config.json: found \"[]\", expected a JSON object");
}

TEST(Load, refuses_architectures_that_it_does_not_know) {
  const FixtureCopy copy("vit-classify");
  copy.set("architectures", {"ViTForImageClasification"});
  copy.refuses("is not known; did you mean 'ViTForImageClassification'? Known: BertModel, ");
  copy.set("architectures", Json::array());
  copy.set("model_type", "swin");
  copy.refuses("has no list of \"architectures\"");
}

TEST(Load, refuses_values_by_the_name_of_their_key) {
  const FixtureCopy vit("vit-classify");
  vit.refuses_value("hidden_size", -48, "hidden_size is \"-48\", expected a whole number of 1 or more");
  vit.refuses_value("hidden_size", "wide", "hidden_size is");
  vit.refuses_value("num_hidden_layers", 1.5, "num_hidden_layers is \"1.5\"");
  vit.refuses_value("num_attention_heads", 5, "multi_head: width 48 does not divide into 5 heads");
  vit.refuses_value("hidden_act", "quik_gelu", "hidden_act: activation: 'quik_gelu' is not known; did you mean 'quick_gelu'?");
  vit.refuses_value("hidden_act", "prelu", "hidden_act: activation: 'prelu' has parameters of its own");
  vit.refuses_value("hidden_dropout_prob", 1, "hidden_dropout_prob is");
  vit.refuses_value("patch_size", 0, "patch_size is");
  vit.refuses_value("qkv_bias", 1, "qkv_bias is \"1\", expected true or false");
  vit.refuses_value("num_labels", 4, "num_labels is \"4\", expected 10 as in id2label");
  const FixtureCopy bert("bert-model");
  bert.refuses_value("position_embedding_type", "relative_key", "position_embedding_type is");
  bert.refuses_value("add_cross_attention", true, "add_cross_attention is \"true\", expected false");
  const FixtureCopy llama("llama-grouped");
  llama.refuses_value("rope_scaling", {{"rope_type", "yarm"}, {"factor", 2}}, "rope_scaling.rope_type is");
  llama.refuses_value("rope_scaling", {{"type", "dynamic"}}, "rope_scaling.factor is absent, expected");
  llama.refuses_value("rope_scaling", {{"type", "longrope"}, {"short_factor", {1, 2}}}, "rope_scaling.short_factor is");
  llama.refuses_value("rope_scaling", {{"type", "linear"}, {"factor", 2}, {"partial_rotary_factor", 0.01}},
                      "rope_scaling.partial_rotary_factor is");
  llama.refuses_value("rope_scaling", {{"type", "linear"}}, "rope_scaling.factor is absent, expected");
  llama.refuses_value("num_key_value_heads", 3, "multi_head: 4 heads do not share 3 key heads evenly");
  const FixtureCopy modern("modernbert-masked");
  const Json usual = read_json(modern / "config.json")["rope_parameters"];
  Json scaled = usual;
  scaled["full_attention"]["rope_type"] = "yarn";
  modern.refuses_value("rope_parameters", scaled, "rope_parameters.full_attention.rope_type is \"yarn\", expected \"default\"");
  scaled = usual;
  scaled["sliding_attention"]["factor"] = 2;
  modern.refuses_value("rope_parameters", scaled,
                       "rope_parameters.sliding_attention.factor is \"2\", expected rope_type and rope_theta only");
  modern.refuses_value("rope_parameters", {{"rope_type", "default"}, {"rope_theta", 100}},
                       "rope_parameters.rope_theta is \"100\", expected an object full_attention and an object sliding_attention only");
  modern.refuses_value("rope_scaling", {{"type", "linear"}, {"factor", 2}}, "rope_scaling.type is \"linear\", expected \"default\"");
  modern.refuses_value("rope_scaling", {{"factor", 2}}, "rope_scaling.factor is \"2\", expected no scaling of rotary positions");
  modern.set("rope_scaling", {{"rope_type", "default"}, {"factor", nullptr}});
  expect_parity(modern.path());
  const FixtureCopy marian("marian-shared");
  marian.refuses_value("normalize_before", true, "normalize_before is");
  marian.refuses_value("encoder_layerdrop", 0.1, "encoder_layerdrop is");
}

TEST(Load, sizes_of_a_hostile_config_cost_nothing) {
  const FixtureCopy copy("bert-sentiment");
  copy.refuses_value("num_hidden_layers", int64_t{1} << 30,
                     "num_hidden_layers is \"1073741824\", expected a whole number of 0 or more, and at most 1000");
  copy.set("vocab_size", int64_t{1} << 24);
  copy.refuses("of another shape: \"bert.embeddings.word_embeddings.weight\"");
  copy.set("vocab_size", int64_t{1} << 60);
  copy.refuses("vocab_size is");
}

TEST(Load, lists_missing_and_unused_names_unless_they_are_allowed) {
  const FixtureCopy copy("bert-sentiment");
  copy.rename([](const std::string& name) { return name == "classifier.weight" ? std::string("surplus") : name; });
  copy.refuses("1 missing: \"classifier.weight\"");
  copy.refuses("1 not used: \"surplus\"");
  const Model model = load(copy.path(), {.names = {.allow_missing = {"classifier"}, .allow_unused = {"surplus"}}});
  EXPECT_EQ(model.params().count(), load(fixture("bert-sentiment")).params().count());
}

TEST(Load, knows_names_of_old_checkpoints_and_of_inner_models) {
  const FixtureCopy bert("bert-sentiment");
  bert.rename([](const std::string& name) {
    std::string old = name;
    if (name.ends_with("LayerNorm.weight")) old.replace(name.size() - 6, 6, "gamma");
    if (name.ends_with("LayerNorm.bias")) old.replace(name.size() - 4, 4, "beta");
    return old;
  });
  expect_parity(bert.path());
  const FixtureCopy gpt2("gpt2-lm");
  gpt2.rename([](const std::string& name) { return name.substr(std::string("transformer.").size()); });
  expect_parity(gpt2.path());
  const FixtureCopy inner("bert-causal");
  inner.rename([](const std::string& name) { return "bert." + name; });
  expect_parity(inner.path());
}

TEST(Load, tied_words_may_have_either_name_or_both) {
  const FixtureCopy gpt2("gpt2-lm");
  gpt2.rename([](const std::string& name) { return name == "transformer.wte.weight" ? std::string("lm_head.weight") : name; });
  expect_parity(gpt2.path());
  const FixtureCopy untied("gpt2-variant");  // two different tensors are not tied, whatever config.json says, as in transformers
  untied.set("tie_word_embeddings", true);
  expect_parity(untied.path());
  untied.rename([](const std::string& name) { return name.starts_with("transformer.") ? name.substr(12) : name; });
  expect_parity(untied.path());
  const FixtureCopy t5("t5-gated");  // the same if the embeddings have another name
  t5.rename([](const std::string& name) { return name == "shared.weight" ? std::string("decoder.embed_tokens.weight") : name; });
  expect_parity(t5.path());
}

TEST(Save, gives_back_what_was_loaded) {
  for (const char* name : {"vit-classify", "bert-pretrain", "distilbert-loss", "distilbert-masked", "gpt2-lm", "gpt2-classify",
                           "llama-grouped", "marian-separate", "roberta-masked", "xlm-roberta-masked", "mistral-window", "qwen2-window",
                           "modernbert-masked", "t5-relu", "t5-gated", "clip-pairs", "vision-caption"}) {
    SCOPED_TRACE(name);
    const FixtureCopy copy(name);
    copy.set("key_of_another_program", {{"kept", true}});
    save(load(copy.path()), copy.path());
    expect_parity(copy.path());
    EXPECT_EQ(read_json(copy / "config.json")["key_of_another_program"]["kept"], true);
    const Safetensors before = Safetensors::open(fixture(name) / "model.safetensors"),
                      after = Safetensors::open(copy / "model.safetensors");
    std::vector<std::string> old_names = before.names(), new_names = after.names();
    std::sort(old_names.begin(), old_names.end());
    std::sort(new_names.begin(), new_names.end());
    EXPECT_EQ(old_names, new_names);
    for (const std::string& each : old_names) expect_same(before.tensor(each), after.tensor(each));
    EXPECT_EQ(after.metadata().at("format"), "pt");
  }
}

TEST(Save, in_half_precision_and_in_shards) {
  const FixtureCopy copy("gpt2-lm");
  const Model model = load(copy.path());
  save(model, copy.path(), {.dtype = DType::bf16, .shard_bytes = 50'000});
  EXPECT_FALSE(std::filesystem::exists(copy / "model.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(copy / "model.safetensors.index.json"));
  EXPECT_EQ(read_json(copy / "config.json")["dtype"], "bfloat16");
  expect_parity(copy.path(), 0.02);
  save(model, copy.path(), {.dtype = DType::f16});
  EXPECT_FALSE(std::filesystem::exists(copy / "model.safetensors.index.json"));
  expect_parity(copy.path(), 0.002);
  expect_error([&] { save(model, copy.path(), {.dtype = DType::i64}); }, "save: parameters as i64, expected f32, bf16 or f16");
}

// A folder may have shards of an earlier save.
TEST(Save, leaves_no_shards_of_another_count) {
  const FixtureCopy copy("gpt2-lm");
  const Model model = load(copy.path());
  for (const char* other : {"model-00001-of-0002.safetensors", "model-head-of-other.safetensors", "model-00001-of-00002.bin"})
    put(copy / other, "x");  // not names of shards
  const auto shards = [&] {
    std::set<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(copy.path()))
      if (const std::string name = entry.path().filename(); name.starts_with("model-0") && name.size() == 32) out.insert(name);
    return out;
  };
  const auto listed = [&] {
    std::set<std::string> out;
    const Json index = read_json(copy / "model.safetensors.index.json");
    for (const auto& [tensor, file] : index["weight_map"].items()) out.insert(file);
    return out;
  };
  save(model, copy.path(), {.shard_bytes = 20'000});
  const std::set<std::string> small = shards();
  EXPECT_EQ(small, listed());
  save(model, copy.path(), {.shard_bytes = 50'000});
  EXPECT_LT(shards().size(), small.size());
  EXPECT_EQ(shards(), listed());
  expect_parity(copy.path());
  save(model, copy.path());
  EXPECT_TRUE(shards().empty());
  EXPECT_TRUE(std::filesystem::exists(copy / "model-00001-of-0002.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(copy / "model-head-of-other.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(copy / "model-00001-of-00002.bin"));
  expect_parity(copy.path());
}

TEST(ModelCalls, positions_may_be_one_row_for_all_texts) {
  const NoGrad no_grad;
  const Tensor tokens = Tensor::from(std::vector<int64_t>{5, 6, 7, 8, 9, 10}, {2, 3}, kCpu),
               one = Tensor::from(std::vector<int64_t>{2, 0, 4}, {1, 3}, kCpu), each = concat({one, one}, 0);
  for (const char* name : {"llama-biased", "bert-regression-many", "modernbert-masked"}) {
    const Model model = load(fixture(name));
    expect_same(model({{"input_ids", tokens}, {"position_ids", one}}).at("logits"),
                model({{"input_ids", tokens}, {"position_ids", each}}).at("logits"));
  }
}

TEST(ModelCalls, name_inputs_that_are_unknown_or_missing) {
  const Model model = load(fixture("vit-classify"));
  const Tensor x = Tensor::zeros({1, 3, 32, 32}, kCpu);
  expect_error(
      [&] {
        model({{"pixel_value", x}});
      },
      "ViTForImageClassification: the input 'pixel_value' is not known; did you mean 'pixel_values'?");
  expect_error([&] { model(TensorMap{}); }, "model: the input 'pixel_values' is missing");
  expect_error(
      [&] {
        model({{"pixel_values", Tensor::zeros({1, 3, 31, 32}, kCpu)}});
      },
      "vit: pixel_values of shape (1, 3, 31, 32), expected (B, 3, 32, 32)");
  expect_error([&] { model.decoder(); }, "ViTForImageClassification: does not generate text, expected a language model");
}

}  // namespace
}  // namespace heed::test
