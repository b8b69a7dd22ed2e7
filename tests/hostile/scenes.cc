#include "tests/hostile/scenes.h"

#include <algorithm>

#include "tests/hostile/mutate.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

void put(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string sentences(int count) {
  const char* const words[] = {"a", "fine", "film", "with", "great", "actors", "but", "no", "story", "at", "all", "Größe"};
  std::string out;
  RandomSource rng(5);
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < 8; ++k) out += std::string(k > 0 ? " " : "") + words[rng.below(std::size(words))];
    out += i % 4 == 3 ? ".\n\n" : ".\n";
  }
  return out;
}

std::string table(char separator, int rows) {
  std::string out = std::string("text") + separator + "label\n";
  for (int i = 0; i < rows; ++i) out += "film number " + std::to_string(i * 7 % 5) + separator + (i % 2 ? "good" : "bad") + "\n";
  return out;
}

std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string pixels(size_t count) {
  std::string out;
  RandomSource rng(7);
  for (size_t i = 0; i < count; ++i) out += static_cast<char>(rng.next());
  return out;
}

void put_idx(const fs::path& folder) {
  for (const char* part : {"train", "t10k"}) {
    std::string labels;
    for (int i = 0; i < 20; ++i) labels += static_cast<char>(i % 3);
    const std::string images = big_endian(2051) + big_endian(20) + big_endian(12) + big_endian(12) + pixels(20 * 144);
    put(folder / (std::string(part) + "-labels-idx1-ubyte"), big_endian(2049) + big_endian(20) + labels);
    if (part[1] == '1')
      put(folder / (std::string(part) + "-images-idx3-ubyte.gz"), gz(images));
    else
      put(folder / (std::string(part) + "-images-idx3-ubyte"), images);
  }
}

void put_cifar(const fs::path& folder) {
  for (const char* name : {"data_batch_1.bin", "test_batch.bin"}) {
    std::string out;
    for (int i = 0; i < 12; ++i) out += static_cast<char>(i % 10) + pixels(3072);
    put(folder / name, out);
  }
  put(folder / "batches.meta.txt", "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n");
}

// q, k and v of shape (1, 2, 16, 4), in f32.
std::string queries_keys_values() {
  constexpr size_t bytes = 1 * 2 * 16 * 4 * 4;
  std::string header, data;
  for (const char* name : {"q", "k", "v"}) {
    header += std::string(header.empty() ? "{" : ",") + "\"" + name + R"(":{"dtype":"F32","shape":[1,2,16,4],"data_offsets":[)" +
              std::to_string(data.size()) + "," + std::to_string(data.size() + bytes) + "]}";
    for (size_t i = 0; i < bytes / 4; ++i) {
      const float value = static_cast<float>(i * 7 % 13) / 13;
      data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  header += "}";
  std::string out;
  for (size_t i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i));
  return out + header + data;
}

const Words kTiny = {"layers=1", "width=16", "heads=2", "batch=8", "epochs=1", "steps=2", "save_every=1", "log_every=1"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

bool reads(const Words& command, const std::string& file) {
  for (const std::string& word : command)
    for (size_t at = word.find('@'); at != word.npos; at = word.find('@', at + 1)) {
      const std::string path = word.substr(at + 1, word.find(',', at) - at - 1);
      if (file == path || file.starts_with(path + "/")) return true;
    }
  return false;
}

Words in_folder(const Words& command, const fs::path& folder) {
  Words out = command;
  for (std::string& word : out)
    for (size_t at = 0; (at = word.find('@', at)) != word.npos; at += folder.string().size()) word.replace(at, 1, folder.string() + "/");
  return out;
}

std::vector<Scene> make_scenes(const fs::path& folder, const fs::path& fixtures, const Run& run) {
  std::vector<Scene> scenes;
  const auto copy_model = [&](const std::string& fixture, const fs::path& to) {
    fs::create_directories(to);
    fs::copy(fixtures / fixture, to);
  };
  const fs::path seeds = fixtures.parent_path() / "fuzz/seeds";
  const auto run_in = [&](const std::string& scene, const Words& words) { run(in_folder(words, folder / scene)); };
  const auto images = [&](const fs::path& to) {
    for (const char* part : {"train", "test"})
      for (const char* kind : {"a", "b"})
        for (const auto& entry : fs::directory_iterator(seeds / "image")) {
          const fs::path place = to / part / kind;
          fs::create_directories(place);
          fs::copy(entry.path(), place);
        }
  };

  copy_model("vit-classify", folder / "vit/model");
  images(folder / "vit/images");
  const std::vector<std::string> more = {"exif.jpg", "lossy.webp", "alpha.webp", "color-24.bmp", "palette-8.bmp"};
  put(folder / "vit/model/preprocessor_config.json",
      R"({"image_processor_type": "ViTImageProcessor", "do_resize": true, "size": {"height": 32, "width": 32}, "resample": 2,
          "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_normalize": true, "image_mean": [0.5, 0.5, 0.5],
          "image_std": [0.5, 0.5, 0.5]})");
  scenes.push_back({"vit",
                    {"model/config.json", "model/model.safetensors", "model/io.safetensors", "model/preprocessor_config.json",
                     "images/test/a/color.png", "images/test/a/progressive.jpg", "images/test/b/palette-4.png", "images/test/b/cmyk.jpg"},
                    {{"predict", "@model", "@images/test", "--json"},
                     {"predict", "@model", "@images/test", "--json", "--skip-bad", "--int8"},
                     {"inspect", "@model"},
                     {"inspect", "@model", "@images/test/a/color.png", "--html", "@out/page.html"},
                     {"cost", "@model"},
                     {"convert", "@model", "@out/model", "--dtype", "f16"},
                     {"parity", "@model"},
                     {"data", "look", "@images", "--json"},
                     {"data", "look", "@images", "-o", "@out/sheet.png"},
                     with({"train", "classify", "data=@images", "patch=4", "--runs", "@out", "--name", "a"}, kTiny),
                     {"train", "classify", "data=@images", "from=@model", "steps=1", "batch=4", "--runs", "@out", "--name", "a"}}});
  for (const std::string& name : more) scenes.back().files.push_back("images/test/a/" + name);

  copy_model("bert-sentiment", folder / "bert/model");
  put(folder / "bert/model/tokenizer.json", bytes_of_file(seeds / "tokenizer/bert.json"));
  put(folder / "bert/data.tsv", "text\tlabel\nhello a\t0\na\t1\nhello\t0\n");
  put(folder / "bert/lines.txt", "hello a\na\n\nunaffable!\n");
  scenes.push_back({"bert",
                    {"model/config.json", "model/model.safetensors", "model/tokenizer.json", "data.tsv", "lines.txt"},
                    {{"predict", "@model", "--file", "@lines.txt"},
                     {"embed", "@model", "--file", "@lines.txt", "--npy", "@out/vectors.npy"},
                     {"tokenize", "@model", "hello, unaffable a!"},
                     {"tokenize", "@model/tokenizer.json", "--decode", "5 6 7"},
                     {"inspect", "@model", "hello a", "--json"},
                     {"eval", "@model", "@data.tsv"},
                     {"cost", "@model/config.json"},
                     {"convert", "@model", "@out/model", "--shard", "20000"}}});

  copy_model("gpt2-lm", folder / "gpt/model");
  run({"convert", folder / "gpt/model", folder / "gpt/shards", "--shard", "30000"});
  scenes.push_back({"gpt",
                    {"model/config.json", "model/generation_config.json", "shards/model.safetensors.index.json",
                     "shards/model-00001-of-00002.safetensors", "shards/config.json"},
                    {{"generate", "@model", "--ids", "5 6 7", "--max-new-tokens", "5"},
                     {"generate", "@shards", "--ids", "5 6 7", "--max-new-tokens", "5"},
                     {"inspect", "@shards"},
                     {"cost", "@shards"},
                     {"convert", "@shards", "@out/model"}}});
  for (const auto& entry : fs::directory_iterator(folder / "gpt/shards"))
    if (const std::string name = entry.path().filename(); name.starts_with("model-00001")) scenes.back().files[3] = "shards/" + name;

  put(folder / "write/words.txt", sentences(400));
  run_in("write", with({"train", "language", "data=@words.txt", "vocabulary=300", "length=16", "--runs", "@", "--name", "a"}, kTiny));
  scenes.push_back({"write",
                    {"words.txt", "language/a/best/tokenizer.json", "language/a/best/config.json", "language/a/best/model.safetensors"},
                    {{"generate", "@language/a/best", "a fine", "--max-new-tokens", "5"},
                     {"eval", "@language/a/best", "@words.txt"},
                     {"tokenize", "@language/a/best", "Größe of all"},
                     {"vocabulary", "train", "@words.txt", "--kind", "bpe", "--size", "300", "--out", "@out/vocabulary"},
                     {"vocabulary", "train", "@words.txt", "--out", "@out/vocabulary"},
                     {"data", "look", "@words.txt"},
                     with({"train", "pretrain", "data=@words.txt", "next=false", "vocabulary=200", "--runs", "@out", "--name", "a"}, kTiny),
                     {"train", "--resume", "@language/a"}}});

  run_in("translate", with({"train", "translate", "vocabulary=200", "data=numbers", "--runs", "@", "--name", "a"}, kTiny));
  put(folder / "translate/pair.en", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\n");
  put(folder / "translate/pair.de", "eins\nzwei\ndrei\nvier\nfünf\nsechs\nsieben\nacht\nneun\nzehn\nelf\nzwölf\n");
  const std::string best = "translate/a/best/";
  scenes.push_back(
      {"translate",
       {"pair.en", "pair.de", best + "config.json", best + "generation_config.json", best + "tokenizer.json", best + "model.safetensors"},
       {{"translate", "@translate/a/best", "twenty", "--max-length", "8"},
        {"eval", "@translate/a/best", "@pair.en,@pair.de", "--length", "8"},
        {"inspect", "@translate/a/best"}}});

  put(folder / "spm/model/source.spm", bytes_of_file(seeds / "sentencepiece/unigram.spm"));
  put(folder / "spm/model/target.spm", bytes_of_file(seeds / "sentencepiece/unigram.spm"));
  put(folder / "spm/model/vocab.json", R"({"</s>": 0, "<unk>": 1, "<pad>": 2, "a": 3, "b": 4})");
  put(folder / "spm/gpt2/vocab.json", R"({"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġa": 4})");
  put(folder / "spm/gpt2/merges.txt", "#version: 0.2\na b\nĠ a\n");
  put(folder / "spm/bert/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n");
  for (const char* kind : {"bpe", "byte_bpe", "unigram", "words"})
    put(folder / "spm" / (std::string(kind) + ".json"), bytes_of_file(seeds / "tokenizer" / (std::string(kind) + ".json")));
  scenes.push_back({"spm",
                    {"model/source.spm", "model/vocab.json", "gpt2/vocab.json", "gpt2/merges.txt", "bert/vocab.txt", "bpe.json",
                     "byte_bpe.json", "unigram.json", "words.json"},
                    {{"tokenize", "@model", "a b ab"},
                     {"tokenize", "@gpt2", "ab a"},
                     {"tokenize", "@bert", "a ab"},
                     {"tokenize", "@bpe.json", "a b ab hello"},
                     {"tokenize", "@byte_bpe.json", "a b ab Größe"},
                     {"tokenize", "@unigram.json", "a b ab hello"},
                     {"tokenize", "@words.json", "a b ab hello"}}});

  put(folder / "tables/rows.csv", table(',', 40));
  put(folder / "tables/rows.tsv", table('\t', 40));
  put(folder / "tables/rows.tsv.gz", gz(table('\t', 40)));
  std::string json_lines;
  for (int i = 0; i < 40; ++i)
    json_lines += R"({"text": "film )" + std::to_string(i) + R"(", "label": ")" + (i % 2 ? "good" : "bad") + "\"}\n";
  put(folder / "tables/rows.jsonl", json_lines);
  put(folder / "tables/words.txt.gz", gz(sentences(100)));
  scenes.push_back({"tables", {"rows.csv", "rows.tsv", "rows.tsv.gz", "rows.jsonl", "words.txt.gz"}, {}});
  for (const char* name : {"rows.csv", "rows.tsv", "rows.tsv.gz", "rows.jsonl"}) {
    scenes.back().commands.push_back({"data", "look", std::string("@") + name});
    scenes.back().commands.push_back(with(
        {"train", "sentiment", std::string("data=@") + name, "vocabulary=100", "max_length=16", "--runs", "@out", "--name", "a"}, kTiny));
  }
  scenes.back().commands.push_back(
      with({"train", "language", "data=@words.txt.gz", "vocabulary=200", "length=16", "--runs", "@out", "--name", "a"}, kTiny));

  put_idx(folder / "idx/digits");
  put_cifar(folder / "idx/cifar");
  scenes.push_back({"idx",
                    {"digits/train-images-idx3-ubyte", "digits/train-labels-idx1-ubyte", "digits/t10k-images-idx3-ubyte.gz",
                     "digits/t10k-labels-idx1-ubyte", "cifar/data_batch_1.bin", "cifar/test_batch.bin", "cifar/batches.meta.txt"},
                    {{"data", "look", "@digits", "--every"},
                     {"data", "look", "@cifar", "-o", "@out/sheet.png"},
                     with({"train", "classify", "data=@digits", "patch=6", "--runs", "@out", "--name", "a"}, kTiny),
                     with({"train", "classify", "data=@cifar", "patch=16", "--runs", "@out", "--name", "a"}, kTiny)}});

  run_in("run", with({"train", "classify", "data=shapes:16", "patch=16", "position=gaussian", "--runs", "@", "--name", "a"}, kTiny));
  scenes.push_back({"run",
                    {},
                    {{"report", "@classify/a", "-o", "@out/report.html"},
                     {"runs", "@classify", "--json"},
                     {"predict", "@classify/a", "@classify/a/image.png"},
                     {"train", "--resume", "@classify/a"},
                     {"lab", "heads", "@classify/a", "-o", "@out/heads"},
                     {"train", "classify", "@classify/a/config.toml", "--runs", "@out", "--name", "b"}}});
  fs::copy(fixtures / "images/color.png", folder / "run/classify/a/image.png");
  for (const auto& entry : fs::recursive_directory_iterator(folder / "run/classify/a"))
    if (entry.is_regular_file() && entry.path().extension() != ".html")
      scenes.back().files.push_back(fs::relative(entry.path(), folder / "run"));
  std::sort(scenes.back().files.begin(), scenes.back().files.end());

  put(folder / "attend/in.safetensors", queries_keys_values());
  scenes.push_back({"attend",
                    {"in.safetensors"},
                    {{"attend", "@in.safetensors", "causal=true", "-o", "@out/out.safetensors"},
                     {"attend", "@in.safetensors", "grid=4x4", "probabilities=true", "-o", "@out/out.safetensors"}}});
  return scenes;
}

}  // namespace heed::test
