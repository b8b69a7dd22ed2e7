// Labels and embeddings of sentences: batches give the same results as single sentences, in the order of the sentences.
#include <gtest/gtest.h>

#include <cmath>

#include "heed/io/image.h"
#include "heed/models/architecture.h"
#include "tests/expect_error.h"
#include "tests/models/text_folder.h"
#include "tests/structure/source.h"

// example begins
#include <heed/models/classify.h>
#include <heed/models/embed.h>
#include <heed/models/image_processor.h>

// The best label of every sentence.
std::vector<std::string> best_labels(const std::string& folder, const std::vector<heed::Sentence>& sentences) {
  const heed::TextModel model = heed::load_text_model(folder);  // the checkpoint and its tokenizer
  std::vector<std::string> out;
  for (const std::vector<heed::Label>& labels : heed::classify(model, sentences)) out.push_back(labels[0].name);
  return out;
}

// Sentence embeddings, (B, D): if normalized, their dot products are cosines.
heed::Tensor vectors(const std::string& folder, const std::vector<heed::Sentence>& sentences) {
  return heed::embed(heed::load_embedder(folder), sentences, heed::embed_options(folder));
}

// The five best labels of an image.
std::vector<heed::Label> best_of_image(const std::string& folder, const std::string& file) {
  const heed::Model model = heed::load(folder);
  const std::vector<heed::Image> images = {heed::read_image(file)};
  heed::TensorMap out = model({{"pixel_values", heed::ImageProcessor(folder)(images)}});
  return heed::Labels(model)(out["logits"], 5)[0];
}
// example ends

namespace heed::test {
namespace {

const std::vector<Sentence> kSentences = {{"hello"}, {"a a, hello!"}, {""}, {"unaffable wanted, running a a a!"}, {"a", "hello a"}};

// The outputs of the model for one sentence.
TensorMap alone(const TextModel& model, const Sentence& sentence) {
  const NoGrad no_grad;
  const Encoding encoding = encode_sentences(model, std::span(&sentence, 1)).encodings[0];
  const EncodedBatch batch = model.tokenizer.batch(std::span(&encoding, 1));
  TensorMap inputs{{"input_ids", batch.input_ids}};
  if (model.model.family().segments) inputs["token_type_ids"] = batch.token_type_ids;
  return model.model(inputs);
}

std::vector<double> softmax_of(const std::vector<float>& x) {
  std::vector<double> out;
  double total = 0;
  for (const float each : x) total += out.emplace_back(std::exp(static_cast<double>(each)));
  for (double& each : out) each /= total;
  return out;
}

TEST(Classify, gives_labels_in_the_order_of_the_sentences) {
  for (const char* name : {"bert-sentiment", "distilbert-sentiment", "distilbert-loss", "bert-next", "gpt2-classify", "modernbert-classify",
                           "mistral-classify"}) {
    const TextFolder folder(name);
    const TextModel model = load_text_model(folder.path());
    const std::vector<std::vector<Label>> found = classify(model, kSentences);
    ASSERT_EQ(found.size(), kSentences.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const std::vector<double> expected = softmax_of(alone(model, kSentences[i])["logits"].to_vector<float>());
      ASSERT_EQ(found[i].size(), expected.size());
      for (size_t k = 0; k < found[i].size(); ++k) {
        EXPECT_NEAR(static_cast<double>(found[i][k].score), expected[static_cast<size_t>(found[i][k].id)], 1e-5) << name;
        EXPECT_GE(found[i][std::max<size_t>(k, 1) - 1].score, found[i][k].score);
      }
    }
  }
}

TEST(Classify, follows_the_problem_type) {
  const TextFolder many("bert-multi-label"), one("bert-regression"), values("bert-regression-many");
  many.change("id2label", {{"0", "short"}, {"1", "kind"}, {"2", "angry"}, {"3", "long"}});
  const TextModel model = load_text_model(many.path());
  const std::vector<float> logits = alone(model, kSentences[1])["logits"].to_vector<float>();
  const std::vector<Label> best = classify(model, kSentences, 3)[1];
  for (const Label& label : best)
    EXPECT_NEAR(static_cast<double>(label.score), 1 / (1 + std::exp(-static_cast<double>(logits[static_cast<size_t>(label.id)]))), 1e-5);
  EXPECT_EQ(best.size(), 3u);
  EXPECT_EQ(Labels(model.model).names(), (std::vector<std::string>{"short", "kind", "angry", "long"}));

  for (const TextFolder* folder : {&one, &values}) {
    const TextModel regression = load_text_model(folder->path());
    const std::vector<float> expected = alone(regression, kSentences[3])["logits"].to_vector<float>();
    const std::vector<Label> found = classify(regression, kSentences, 1)[3];
    ASSERT_EQ(found.size(), expected.size());
    for (size_t k = 0; k < found.size(); ++k) EXPECT_NEAR(found[k].score, expected[k], 1e-5f);
  }
  one.change("problem_type", nullptr);
  EXPECT_EQ(Labels(load(one.path())).kind(), Labels::Kind::value);
  one.change("problem_type", "guessing");
  expect_refused([&] { Labels(load(one.path())); }, "config.json: problem_type is \"guessing\", expected regression, ");
}

TEST(Classify, labels_words_by_their_first_token) {
  const TextFolder folder("bert-tokens");
  const TextModel model = load_text_model(folder.path());
  const std::vector<Encoding> encodings = encode_sentences(model, kSentences).encodings;
  const std::string& text = kSentences[3].text;
  const std::vector<LabelledWord> found = label_words(model, encodings)[3];
  std::vector<std::string> words;
  for (const LabelledWord& word : found) words.push_back(text.substr(word.at.begin, word.at.end - word.at.begin));
  EXPECT_EQ(words, (std::vector<std::string>{"unaffable", "wanted", ",", "running", "a", "a", "a", "!"}));
  const Tensor logits = alone(model, kSentences[3])["logits"];  // [CLS] un ##aff ##able want ...
  const std::vector<double> wanted = softmax_of(slice(logits, 1, 4, 5).to_vector<float>());
  EXPECT_NEAR(static_cast<double>(found[1].label.score), *std::max_element(wanted.begin(), wanted.end()), 1e-5);
  EXPECT_EQ(found[1].label.name, "LABEL_" + std::to_string(std::max_element(wanted.begin(), wanted.end()) - wanted.begin()));
  EXPECT_TRUE(label_words(model, encodings)[2].empty());
}

TEST(Classify, fills_masks) {
  for (const char* name : {"bert-masked", "bert-pretrain-untied"}) {
    const TextFolder folder(name);
    const TextModel model = load_text_model(folder.path());
    const std::vector<Sentence> sentences = {{"a [MASK]"}, {"hello [MASK], a [MASK]!"}};
    const auto found = fill_masks(model, encode_sentences(model, sentences).encodings, 4);
    ASSERT_EQ(found[0].size(), 1u);
    ASSERT_EQ(found[1].size(), 2u);
    EXPECT_EQ(found[1][1].at.begin, 16u);
    TensorMap out = alone(model, sentences[1]);
    const Tensor logits = out.contains("logits") ? out["logits"] : out["prediction_logits"];
    const std::vector<double> expected = softmax_of(slice(logits, 1, 5, 6).to_vector<float>());
    ASSERT_EQ(found[1][1].words.size(), 4u);
    for (const Label& word : found[1][1].words) {
      EXPECT_NEAR(static_cast<double>(word.score), expected[static_cast<size_t>(word.id)], 1e-5);
      EXPECT_EQ(word.name, word.id < 22 ? kBertTokens[static_cast<size_t>(word.id)] : "");  // the fixture has more embeddings than tokens
    }
    EXPECT_NEAR(static_cast<double>(found[1][1].words[0].score), *std::max_element(expected.begin(), expected.end()), 1e-5);
    expect_error([&] { fill_masks(model, encode_sentences(model, kSentences).encodings); }, "fill_masks: sentence 1 has no [MASK] among");
  }
}

TEST(Embed, pools_tokens_without_padding) {
  const TextFolder folder("bert-model");
  const TextModel model = load_embedder(folder.path());
  const auto expected = [&](const Tensor& states, SentencePooling pooling, bool normalize) {  // states: (1, N, D)
    const auto N = static_cast<size_t>(states.size(1)), D = static_cast<size_t>(states.size(2));
    const std::vector<float> x = states.to_vector<float>();
    std::vector<double> out(D);
    double square = 0;
    for (size_t d = 0; d < D; ++d) {
      double total = 0, largest = -1e30;
      for (size_t i = 0; i < N; ++i) {
        total += static_cast<double>(x[i * D + d]);
        largest = std::max(largest, static_cast<double>(x[i * D + d]));
      }
      out[d] = pooling == SentencePooling::mean    ? total / static_cast<double>(N)
               : pooling == SentencePooling::first ? static_cast<double>(x[d])
                                                   : largest;
      square += out[d] * out[d];
    }
    for (double& each : out) each /= normalize ? std::sqrt(square) : 1;
    return out;
  };
  for (const SentencePooling pooling : {SentencePooling::mean, SentencePooling::first, SentencePooling::largest})
    for (const bool normalize : {true, false}) {
      const Tensor found = embed(model, kSentences, {.pooling = pooling, .normalize = normalize});
      for (size_t i = 0; i < kSentences.size(); ++i) {
        const std::vector<double> row = expected(alone(model, kSentences[i])["last_hidden_state"], pooling, normalize);
        const std::vector<float> values = slice(found, 0, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1).to_vector<float>();
        for (size_t d = 0; d < row.size(); ++d) EXPECT_NEAR(static_cast<double>(values[d]), row[d], 1e-5);
      }
    }
  expect_error([&] { embed(model, std::span<const Sentence>()); }, "embed: found no sentences, expected at least one");
}

TEST(Embed, takes_the_encoder_out_of_any_checkpoint) {
  for (const char* name : {"bert-masked", "bert-sentiment", "distilbert-sentiment", "bert-pretrain"}) {
    const TextFolder folder(name);
    const TextModel whole = load_text_model(folder.path()), inner = load_embedder(folder.path(), Weights::trainable);
    const NoGrad no_grad;
    const Encoding encoding = encode_sentences(whole, kSentences).encodings[1];
    const Tensor ids = whole.tokenizer.batch(std::span(&encoding, 1)).input_ids;
    const TensorMap out = whole.model({{"input_ids", ids}}, {.hidden_states = true});
    std::string last;  // the names end with numbers
    for (const auto& [key, tensor] : out)
      if (key.starts_with("hidden_states.")) last = key;
    expect_same(out.at(last), inner.model({{"input_ids", ids}}).at("last_hidden_state"));
  }
  const TextFolder gpt2("gpt2-lm"), marian("marian-translate");
  EXPECT_EQ(load_embedder(gpt2.path()).model.architecture(), "GPT2Model");
  expect_refused([&] { load_embedder(marian.path()); }, "config.json: MarianMTModel has no token states, expected an encoder");
}

TEST(Embed, follows_the_files_of_sentence_transformers) {
  const Folder folder;
  EXPECT_EQ(embed_options(folder.path()).pooling, SentencePooling::mean);
  EXPECT_TRUE(embed_options(folder.path()).normalize);
  std::filesystem::create_directory(folder / "1_Pooling");
  const Path pooling = folder / "1_Pooling" / "config.json", modules = folder / "modules.json";
  put(pooling, R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  EXPECT_EQ(embed_options(folder.path()).pooling, SentencePooling::first);
  put(pooling, R"({"pooling_mode": "max"})");
  EXPECT_EQ(embed_options(folder.path()).pooling, SentencePooling::largest);
  put(folder / "sentence_bert_config.json", R"({"max_seq_length": 7})");
  EXPECT_EQ(embed_options(folder.path()).max_length, 7);
  const auto module = [](const char* kind, const char* path) {
    return Json{{"type", std::string("sentence_transformers.models.") + kind}, {"path", path}};
  };
  put(modules, Json{module("Transformer", ""), module("Pooling", "1_Pooling")}.dump());
  EXPECT_FALSE(embed_options(folder.path()).normalize);
  put(modules, Json{module("Transformer", ""), module("Pooling", "1_Pooling"), module("Normalize", "2_Normalize")}.dump());
  EXPECT_TRUE(embed_options(folder.path()).normalize);
  const auto refused = [&](const std::string& message) { expect_refused([&] { embed_options(folder.path()); }, message); };
  put(modules, Json{module("Dense", "2_Dense")}.dump());
  refused("modules.json: type is \"sentence_transformers.models.Dense\", expected a Transformer, a Pooling or a Normalize");
  put(modules, Json{module("Pooling", "1_Pooling")}.dump());
  put(pooling, R"({"pooling_mode_lasttoken": true})");
  refused("config.json: pooling_mode_lasttoken is \"true\", expected false");
  put(pooling, R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})");
  refused("config.json: found 2 kinds of pooling, expected one");
  put(pooling, R"({"pooling_mode": "last"})");
  refused("config.json: pooling_mode is \"last\", expected mean, cls or max");
  put(modules, "7");
  refused("expected a list");
}

TEST(SentencesDocument, shows_what_runs) {
  EXPECT_NE(read_source("docs/models.md").find(shown_example("tests/models/sentences_test.cc")), std::string::npos);
  const TextFolder sentiment("bert-sentiment"), encoder("bert-model");
  EXPECT_EQ(best_labels(sentiment.path(), kSentences).size(), kSentences.size());
  EXPECT_EQ(vectors(encoder.path(), kSentences).size(0), std::ssize(kSentences));
  write_png(sentiment / "dot.png", {1, 1, {1, 2, 3}});
  EXPECT_EQ(best_of_image(fixture("vit-classify"), sentiment / "dot.png").size(), 5u);
}

TEST(TextModel, truncates_to_its_maximum_length) {
  const TextFolder folder("bert-sentiment");
  std::string text;
  for (int i = 0; i < 100; ++i) text += "a ";
  const std::vector<Sentence> sentences = {{text}, {"a"}};
  const TextModel model = load_text_model(folder.path());
  EXPECT_EQ(model.max_tokens, 64);
  EXPECT_EQ(encode_sentences(model, sentences).cut, 1);
  EXPECT_EQ(encode_sentences(model, sentences).encodings[0].size(), 64);
  EXPECT_EQ(encode_sentences(model, sentences, 9).encodings[0].size(), 9);
  EXPECT_EQ(classify(model, sentences).size(), 2u);
  put(folder / "tokenizer_config.json", R"({"model_max_length": 16})");
  EXPECT_EQ(load_text_model(folder.path()).max_tokens, 16);
  put(folder / "tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656})");
  EXPECT_EQ(load_text_model(folder.path()).max_tokens, 64);
  const TextFolder images("vit-classify");
  expect_refused([&] { load_text_model(images.path()); }, "config.json: ViTForImageClassification takes no input_ids");
}

}  // namespace
}  // namespace heed::test
