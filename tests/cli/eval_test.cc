// heed eval from the command line: every kind of model on small data.
#include <cmath>

#include "heed/io/image.h"
#include "heed/models/classify.h"
#include "heed/models/image_processor.h"
#include "heed/train/batch_order.h"
#include "heed/train/padded_rows.h"
#include "heed/train/pretrain_data.h"
#include "heed/train/translate_data.h"
#include "tests/cli/program.h"
#include "tests/models/text_folder.h"

namespace heed::test {
namespace {

Json evaluated(const std::string& arguments) {
  const ProgramResult ran = run_heed("eval --json " + arguments);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  return ran.exit_code == 0 ? Json::parse(ran.out) : Json();
}

TEST(Eval, images_are_evaluated_class_by_class) {
  const Folder folder;
  std::filesystem::copy(fixture("vit-classify"), folder / "model");
  Json config = read_json(folder / "model" / "config.json");
  const std::vector<std::string> names{"ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay"};
  for (size_t i = 0; i < names.size(); ++i) config["id2label"][std::to_string(i)] = names[i];
  put(folder / "model" / "config.json", config.dump());
  const Model model = load(folder / "model");
  const ImageProcessor processor(folder / "model");

  // The labels of seven images are the model's own predictions, except for one.
  int64_t right = 0;
  double loss = 0;
  for (int64_t i = 0; i < 7; ++i) {
    Image image{32, 32, {}};
    for (int64_t p = 0; p < 3 * 32 * 32; ++p) image.pixels.push_back(static_cast<uint8_t>((p * (i + 3) * 37 + p / 96 * 11 * i) % 251));
    const std::vector<float> guess = softmax(model({{"pixel_values", processor(std::span(&image, 1))}}).at("logits")).to_vector<float>();
    const auto best = static_cast<size_t>(std::max_element(guess.begin(), guess.end()) - guess.begin());
    const size_t label = i == 2 ? (best + 1) % names.size() : best;
    right += i != 2;
    loss -= std::log(static_cast<double>(guess[label])) / 7;
    const Path class_folder = folder / "data" / "test" / names[label];
    std::filesystem::create_directories(class_folder);
    write_png(class_folder / (std::to_string(i) + ".png"), image);
  }
  const Image small{8, 8, std::vector<uint8_t>(192, 90)};
  for (const std::string& name : names) {
    std::filesystem::create_directories(folder / "data" / "train" / name);
    write_png(folder / "data" / "train" / name / "0.png", small);
  }

  const std::string arguments = (folder / "model").string() + " " + (folder / "data").string();
  const Json found = evaluated(arguments);
  EXPECT_NEAR(found["figures"]["accuracy"].get<double>(), static_cast<double>(right) / 7, 1e-9);
  EXPECT_NEAR(found["figures"]["loss"].get<double>(), loss, 1e-4);
  EXPECT_TRUE(found["figures"].contains("top5"));
  EXPECT_EQ(found["what"], "7 images, test");
  EXPECT_EQ(found["detail"]["confusion"].size(), 10u);
  EXPECT_EQ(evaluated(arguments + " --part train")["what"], "10 images, train");
  EXPECT_EQ(evaluated(arguments + " --image 48")["model"], (folder / "model").string());
  EXPECT_NE(run_heed("eval " + arguments + " source=en").err.find("found source=, which does not apply"), std::string::npos);
  const ProgramResult table = run_heed("eval " + arguments + " --confusion");
  EXPECT_TRUE(table.out.starts_with("7 images, test\nloss ")) << table.out << table.err;
  EXPECT_NE(table.out.find("accuracy              85.71%\n"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("\nclass  precision  recall      f1   count\nant "), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("\ntruth \\ guess"), std::string::npos) << table.out;

  std::filesystem::rename(folder / "data" / "train" / "ant", folder / "data" / "train" / "yak");
  const ProgramResult unknown = run_heed("eval " + arguments + " --part train");
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_NE(unknown.err.find("yak"), std::string::npos) << unknown.err;
  EXPECT_NE(unknown.err.find("expected classes of the model: \"ant\", \"bee\""), std::string::npos) << unknown.err;
  for (int i = 0; i < 2; ++i) {  // the parts of the first are of the same job, though --image makes another folder each time
    const ProgramResult kept = run_heed("eval " + arguments + " --part train --image 48 --parts " + (folder / "parts").string());
    EXPECT_EQ(kept.exit_code, 3) << kept.err;
    EXPECT_NE(kept.err.find("yak"), std::string::npos) << kept.err;
  }

  const std::string nameless = "eval " + fixture("vit-classify").string() + " ";
  std::filesystem::create_directories(folder / "few" / "ant");
  write_png(folder / "few" / "ant" / "0.png", small);
  const ProgramResult fewer = run_heed(nameless + (folder / "few").string());
  EXPECT_EQ(fewer.exit_code, 3);
  EXPECT_NE(fewer.err.find(": found 1 classes, expected 10 as in the model"), std::string::npos) << fewer.err;
  const ProgramResult by_order = run_heed(nameless + (folder / "data").string() + " --part train");
  EXPECT_NE(by_order.out.find("10 images, train\n"), std::string::npos) << by_order.err;
  EXPECT_NE(by_order.out.find("accuracy              10.00%\n"), std::string::npos) << by_order.out;
  EXPECT_EQ(run_heed("eval " + arguments + " --beams 2").exit_code, 2);
}

TEST(Eval, labels_of_sentences_are_matched_by_name_or_by_number) {
  const TextFolder folder("bert-sentiment");
  const std::string model = folder.path().string();
  const std::vector<Sentence> sentences{{"hello, a!"}, {"a"}, {"unaffable a"}, {"hello hello"}, {"a a a a hello"}};
  const auto answers = classify(load_text_model(folder.path()), sentences, 1);
  std::string numbers = "sentence\tlabel\n", words = "label\twords\n";
  for (size_t i = 0; i < sentences.size(); ++i) {
    const int64_t label = i == 1 ? 1 - answers[i][0].id : answers[i][0].id;
    numbers += sentences[i].text + '\t' + std::to_string(label) + '\n';
    words += std::string(label == 0 ? "bad" : "good") + '\t' + sentences[i].text + '\n';
  }
  put(folder / "numbers.tsv", numbers);
  put(folder / "words.tsv", words);
  const Json found = evaluated(model + " " + (folder / "numbers.tsv").string());
  EXPECT_NEAR(found["figures"]["accuracy"].get<double>(), 0.8, 1e-9);
  EXPECT_EQ(found["what"], "5 sentences");
  const ProgramResult none = run_heed("eval " + model + " " + (folder / "words.tsv").string() + " --text words");
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_NE(none.err.find("expected labels of the model: \"LABEL_0\", \"LABEL_1\", or their numbers"), std::string::npos) << none.err;
  folder.change("id2label", {{"0", "bad"}, {"1", "good"}});
  EXPECT_EQ(evaluated(model + " " + (folder / "words.tsv").string() + " --text words")["figures"], found["figures"]);
  EXPECT_EQ(evaluated(model + " " + (folder / "numbers.tsv").string())["figures"], found["figures"]);
  folder.change("problem_type", "multi_label_classification");
  EXPECT_EQ(run_heed("eval " + model + " " + (folder / "words.tsv").string() + " --text words").exit_code, 3);
}

TEST(Eval, language_models_predict_every_token_but_the_first) {
  const TextFolder folder("gpt2-lm");
  std::string text;
  for (int i = 0; i < 40; ++i) text += i % 3 == 0 ? "hello, a! " : i % 2 == 0 ? "unaffable a " : "a hello ";
  put(folder / "text.txt", text);
  const std::string arguments = folder.path().string() + " " + (folder / "text.txt").string();

  // Window by window, with the model itself.
  const TextModel model = load_text_model(folder.path());
  const Encoding encoding = model.tokenizer.encode(text);
  const std::vector<int64_t> ids(encoding.ids.begin(), encoding.ids.end());
  const int64_t predicted = std::ssize(ids) - 1, window = 17;
  double loss = 0, right = 0;
  for (int64_t begin = 0; begin < predicted; begin += window) {
    const int64_t N = std::min(window, predicted - begin);
    const auto first = ids.begin() + begin;
    const Tensor logits =
        log_softmax(model.model({{"input_ids", Tensor::from(std::vector<int64_t>(first, first + N), {1, N}, kCpu)}}).at("logits"));
    const std::vector<float> all = logits.to_vector<float>();
    const std::vector<int64_t> guesses = argmax(logits).to_vector<int64_t>();
    for (int64_t i = 0; i < N; ++i) {
      loss -= static_cast<double>(all[static_cast<size_t>(i * logits.size(2) + first[i + 1])]);
      right += guesses[static_cast<size_t>(i)] == first[i + 1];
    }
  }
  const Json found = evaluated(arguments + " --length 17");
  EXPECT_EQ(found["detail"]["tokens"], predicted);
  const double count = static_cast<double>(predicted), bytes = static_cast<double>(text.size() - encoding.offsets[0].end);
  EXPECT_NEAR(found["figures"]["loss"].get<double>(), loss / count, 1e-4);
  EXPECT_NEAR(found["figures"]["perplexity"].get<double>(), std::exp(loss / count), 1e-1);
  EXPECT_NEAR(found["figures"]["bits_per_byte"].get<double>(), loss / std::log(2.0) / bytes, 1e-4);
  EXPECT_NEAR(found["figures"]["accuracy"].get<double>(), right / count, 1e-9);
  EXPECT_NE(found["figures"]["loss"], evaluated(arguments)["figures"]["loss"]);

  std::filesystem::create_directory(folder / "texts");
  for (const char* name : {"a.txt", "b.txt"}) put(folder / "texts" / name, text);
  EXPECT_EQ(evaluated(folder.path().string() + " " + (folder / "texts").string())["detail"]["tokens"], 2 * predicted);
  EXPECT_EQ(run_heed("eval " + arguments + " --length 65").exit_code, 2);
  put(folder / "text.txt", "");
  EXPECT_EQ(run_heed("eval " + arguments).exit_code, 3);
}

TEST(Eval, translations_are_compared_with_references) {
  const TextFolder folder("marian-translate");
  Json vocabulary = Json::object();
  for (int i = 0; i < 211; ++i) vocabulary["w" + std::to_string(i)] = i;
  put(folder / "tokenizer.json",
      Json{{"pre_tokenizer", {{"type", "WhitespaceSplit"}}}, {"model", {{"type", "WordLevel"}, {"unk_token", "w2"}, {"vocab", vocabulary}}}}
          .dump());
  put(folder / "source", "w5 w9 w11\nw7\nw30 w31 w32 w33 w34 w35 w36\n");
  const std::string model = folder.path().string(), source = (folder / "source").string(), target = (folder / "target").string();
  const std::string written = output_of_heed("translate " + model + " --file " + source + " --max-length 12");
  put(folder / "target", written);
  const Json same = evaluated(model + " " + source + "," + target + " --length 12 -o " + (folder / "out").string());
  EXPECT_EQ(get(folder / "out"), written);
  EXPECT_EQ(same["figures"]["exact"], 1.0);
  EXPECT_NEAR(same["figures"]["chrf"].get<double>(), 100, 1e-9);
  EXPECT_EQ(same["detail"]["precisions"].size(), 4u);
  put(folder / "target", "hello\nworld\nthere is nothing alike\n");
  EXPECT_LT(evaluated(model + " " + source + "," + target + " --length 12 --beams 2")["figures"]["bleu"].get<double>(), 50);
  EXPECT_EQ(run_heed("eval " + model + " " + source).exit_code, 2);

  std::filesystem::create_directory(folder / "corpus");
  for (const char* part : {"train", "val", "test"}) {
    put(folder / "corpus" / (std::string(part) + ".en"), "w5 w9 w11\nw7\n");
    put(folder / "corpus" / (std::string(part) + ".de"), "hello\nworld\n");
  }
  put(folder / "corpus/val.en", "w7\n");
  put(folder / "corpus/val.de", "world\n");
  const std::string corpus = model + " " + (folder / "corpus").string(), languages = " source=en target=de --length 12";
  EXPECT_EQ(evaluated(corpus + languages)["what"], "2 translations");
  EXPECT_EQ(evaluated(corpus + languages + " --part validation")["what"], "1 translations");
  const ProgramResult unnamed = run_heed("eval " + corpus);
  EXPECT_EQ(unnamed.exit_code, 2);
  EXPECT_NE(unnamed.err.find("extensions of train in"), std::string::npos) << unnamed.err;
  EXPECT_NE(unnamed.err.find("de, en"), std::string::npos) << unnamed.err;
  EXPECT_EQ(run_heed("eval " + corpus + " source=en target=fr").exit_code, 3);

  EXPECT_EQ(run_heed("eval " + TextFolder("bert-tokens").path().string() + " " + source).exit_code, 3);
}

TEST(Eval, masks_and_next_sentences_are_determined_by_the_seed) {
  const TextFolder folder("bert-pretrain"), masked("bert-masked"), next("bert-next");
  std::string text;
  for (int i = 0; i < 24; ++i)
    text += std::string(i % 3 == 0 ? "Hello, a a!" : i % 2 == 0 ? "Unaffable a hello a." : "A hello.") + (i % 6 == 5 ? "\n\n" : "\n");
  put(folder / "text.txt", text);
  const std::string data = " " + (folder / "text.txt").string() + " --length 20";
  const Json found = evaluated(folder.path().string() + data);
  EXPECT_EQ(found["figures"], evaluated(folder.path().string() + data + " --seed 1")["figures"]);
  EXPECT_NE(found["figures"], evaluated(folder.path().string() + data + " --seed 2")["figures"]);

  // The model's own loss of all samples in one batch.
  const TextModel model = load_text_model(folder.path());
  const PretrainData samples(model.tokenizer, {.max_length = 20}, read_documents(folder / "text.txt"), {}, "text.txt");
  std::vector<std::vector<int64_t>> ids, types, mask, labels;
  std::vector<int64_t> rows, follows;
  for (int64_t i = 0; i < samples.count(); ++i) {
    const PretrainSample sample = samples.sample(sample_key(1, 0, i), i);
    ids.push_back(sample.ids);
    types.push_back(sample.types);
    mask.emplace_back(sample.ids.size(), 1);
    labels.push_back(sample.labels);
    follows.push_back(sample.pair_label);
    rows.push_back(i);
  }
  const TensorMap out = model.model({{"input_ids", padded_rows(ids, rows, 0)},
                                     {"token_type_ids", padded_rows(types, rows, 0)},
                                     {"attention_mask", padded_rows(mask, rows, 0)},
                                     {"labels", padded_rows(labels, rows, -100)},
                                     {"next_sentence_label", Tensor::from(follows, {std::ssize(follows)}, kCpu)}});
  EXPECT_EQ(found["detail"]["samples"], samples.count());
  EXPECT_NEAR(found["figures"]["loss"].get<double>(), static_cast<double>(out.at("loss").item()), 1e-3);

  const Json words = evaluated(masked.path().string() + data)["figures"], pairs = evaluated(next.path().string() + data)["figures"];
  EXPECT_TRUE(words.contains("masked_accuracy") && !words.contains("next_accuracy")) << words;
  EXPECT_TRUE(pairs.contains("next_accuracy") && !pairs.contains("masked_accuracy")) << pairs;
  EXPECT_EQ(run_heed("eval " + folder.path().string() + data + "00").exit_code, 2);
}

}  // namespace
}  // namespace heed::test
