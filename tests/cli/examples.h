// Small versions of the models and data that README.md and docs/ use by name; docs/names.md lists them.
#pragma once

#include "heed/io/image.h"
#include "heed/io/json.h"
#include "heed/io/safetensors.h"
#include "heed/ops/ops.h"
#include "tests/cli/program.h"

namespace heed::test {

inline Image example_image(int number, int side = 32) {
  Image out{.width = side, .height = side, .pixels = std::vector<uint8_t>(static_cast<size_t>(3 * side * side))};
  for (size_t i = 0; i < out.pixels.size(); ++i) out.pixels[i] = static_cast<uint8_t>(i * static_cast<size_t>(number % 7 + 1) + i / 96);
  return out;
}

inline std::string example_sentence(int number) {
  const std::vector<std::string> subjects{"The film", "The cast", "A story", "The music", "Every scene"},
      words{"good", "bad", "long", "moving", "dull", "bright"};
  const auto pick = [&](const std::vector<std::string>& from, int at) { return from[static_cast<size_t>(at) % from.size()]; };
  return pick(subjects, number) + " of that year was " + pick(words, number) + " and " + pick(words, number / 2 + 1) + " to the end";
}

inline std::string example_text(int sentences, int first = 0) {
  std::string out;
  for (int i = 0; i < sentences; ++i) out += example_sentence(first + i) + (i % 3 == 2 ? ".\n\n" : ".\n");
  return out;
}

inline void put_labelled(const Path& file, const std::string& between, int count) {
  std::string text = "sentence" + between + "label\n";
  for (int i = 0; i < count; ++i) text += example_sentence(i) + between + (i % 2 ? "positive" : "negative") + "\n";
  put(file, text);
}

// The data of the examples.
inline void put_example_data(const Path& folder) {
  namespace fs = std::filesystem;
  for (const char* name : {"photos/cat", "photos/dog", "holidays", "multi30k", "cifar10", "sst2", "speeches", "sotu"})
    fs::create_directories(folder / name);
  for (int i = 0; i < 12; ++i) write_png(folder / (i % 2 ? "photos/cat" : "photos/dog") / (std::to_string(i) + ".png"), example_image(i));
  for (const char* name : {"cat.png", "photo.png", "holidays/one.png", "holidays/two.png"}) write_png(folder / name, example_image(3));
  put_labelled(folder / "reviews.csv", ",", 24);
  for (const char* name : {"reviews.tsv", "dev.tsv", "sst2/train.tsv", "sst2/dev.tsv"}) put_labelled(folder / name, "\t", 24);
  std::system(("gzip -k '" + (folder / "sst2/train.tsv").string() + "' && rm '" + (folder / "sst2/train.tsv").string() + "'").c_str());
  for (const char* part : {"train", "val", "test", "test_2016_flickr"})
    for (const char* language : {"en", "de"}) put(folder / "multi30k" / (std::string(part) + "." + language), example_text(16));
  for (const char* name : {"train.en", "train.de", "test.en", "test.de", "english.txt", "corpus.txt", "reviews.txt", "shakespeare.txt",
                           "wikitext-test.txt", "speeches/one.txt", "speeches/two.txt"})
    put(folder / name, example_text(90));
  for (int year = 1880; year < 1920; year += 4) put(folder / "sotu" / (std::to_string(year) + "_speech.txt"), example_text(60, year));
  std::string pairs;
  for (int i = 0; i < 6; ++i) pairs += example_sentence(i) + "\t" + example_sentence(i + 1) + "\n";
  put(folder / "pairs.tsv", pairs);
  std::string records;  // a label and 3 x 32 x 32 pixels each
  for (int i = 0; i < 20; ++i) {
    const Image image = example_image(i);
    records += static_cast<char>(i % 10) + std::string(image.pixels.begin(), image.pixels.end());
  }
  for (const char* name : {"data_batch_1.bin", "test_batch.bin"}) put(folder / "cifar10" / name, records);
  put(folder / "cifar10/batches.meta.txt", "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n");
  Rng rng(1);
  const auto random = [&] { return random_uniform({1, 9, 256, 64}, -1, 1, rng, kCpu); };
  std::vector<float> centers;
  for (int i = 0; i < 9; ++i) centers.insert(centers.end(), {static_cast<float>(i / 3 - 1), static_cast<float>(i % 3 - 1)});
  write_safetensors(folder / "in.safetensors", {{"q", random()},
                                                {"k", random()},
                                                {"v", random()},
                                                {"grad_out", random()},
                                                {"alpha", Tensor::full({9}, 1, kCpu)},
                                                {"center", Tensor::from(centers, {9, 2}, kCpu)}});
}

inline constexpr std::array kExampleModels{"vit-base", "vit", "sentiment", "nli", "minilm", "bert-base", "gpt2", "opus-mt-en-de", "en-de"};

// The models of the examples, trained for two steps: the right architectures, with tokenizers.
inline void put_example_models(const Path& folder) {
  const std::string at = "cd '" + folder.string() + "' && ", small = " layers=1 width=16 heads=4 steps=2 --quiet --name 001";
  const auto train = [&](const std::string& arguments, const std::string& run, const std::vector<std::string>& names) {
    ASSERT_EQ(std::system((at + "'" HEED_PROGRAM "' train " + arguments + small).c_str()), 0) << arguments;
    for (const std::string& name : names) std::filesystem::copy(folder / run / "best", folder / name);
  };
  train("classify data=shapes:40 patch=8 position=gaussian pooling=gap", "runs/classify/001", {"vit-base", "vit"});
  train("sentiment data=reviews.csv", "runs/sentiment/001", {"sentiment"});
  train("pairs", "runs/pairs/001", {"nli"});
  train("pretrain data=corpus.txt", "runs/pretrain/001", {"minilm", "bert-base"});
  train("language data=corpus.txt", "runs/language/001", {"gpt2"});
  train("translate data=multi30k source=en target=de", "runs/translate/001", {"opus-mt-en-de", "en-de"});
  for (const char* name : kExampleModels) ASSERT_TRUE(std::filesystem::exists(folder / name)) << name;
  // One example decodes ids up to GPT-2's 50,257 tokens.
  Json tokenizer = read_json(folder / "gpt2/tokenizer.json");
  for (int id = static_cast<int>(tokenizer["model"]["vocab"].size()); id < 50257; ++id)
    tokenizer["model"]["vocab"]["token" + std::to_string(id)] = id;
  write_json(folder / "gpt2/tokenizer.json", tokenizer);
}

}  // namespace heed::test
