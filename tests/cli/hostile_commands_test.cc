// Commands with configs that request huge amounts of memory: a result or exit code 3, with little more time and memory than the original
// model takes. tests/models/hostile_configs_test.cc covers every key.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>

#include "heed/io/image.h"
#include "tests/cli/child.h"
#include "tests/models/text_folder.h"

namespace heed::test {
namespace {

struct Measured {
  int exit_code = 0;
  double seconds = 0;  // CPU time
  int64_t bytes = 0;   // peak memory
  std::string output = {};
};

int64_t high_water_of(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  int64_t kilobytes = 0;
  for (std::string word; status >> word;)
    if (word == "VmHWM:") status >> kilobytes;
  return kilobytes * 1024;
}

Measured measured(std::vector<std::string> arguments) {
  const Folder folder;
  rusage before{}, after{};
  ::getrusage(RUSAGE_CHILDREN, &before);
  Measured out;
  {
    Child child(arguments, folder / "output");
    while (!child.ended()) {
      out.bytes = std::max(out.bytes, high_water_of(child.process()));
      const timespec pause{0, 500'000};
      ::nanosleep(&pause, nullptr);
    }
    out.exit_code = child.wait();
  }
  ::getrusage(RUSAGE_CHILDREN, &after);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; };
  out.seconds = seconds(after.ru_utime) + seconds(after.ru_stime) - seconds(before.ru_utime) - seconds(before.ru_stime);
  out.output = get(folder / "output");
  return out;
}

struct HostileCase {
  std::string fixture, key;
  Json value;
  std::vector<std::string> commands;  // MODEL, IMAGE, TSV, NEW and CONFIG are replaced by paths
  int exit_code = 3;                  // or 0: computed without allocating the memory
};

const std::vector<HostileCase> kCases{
    {"bert-sentiment",
     "intermediate_size",
     16777216,
     {"predict MODEL hello", "embed MODEL hello", "eval MODEL TSV", "inspect MODEL", "cost MODEL", "convert MODEL NEW", "parity MODEL"}},
    {"bert-sentiment", "intermediate_size", 16777216, {"cost CONFIG"}, 0},
    {"bert-sentiment", "num_hidden_layers", 1'000'000'000, {"predict MODEL hello", "inspect MODEL", "cost MODEL", "cost CONFIG"}},
    {"bert-sentiment", "vocab_size", 16777216, {"predict MODEL hello", "embed MODEL hello --int8"}},
    {"bert-sentiment", "num_labels", 16777216, {"predict MODEL hello"}},
    {"llama-three", "max_position_embeddings", 16777216, {"inspect MODEL", "cost MODEL", "generate MODEL --ids 1 --max-new-tokens 3"}, 0},
    {"llama-three", "num_attention_heads", 16777216, {"inspect MODEL", "cost MODEL", "generate MODEL --ids 1"}},
    {"marian-shared",
     "max_position_embeddings",
     1'000'000,
     {"inspect MODEL", "cost MODEL", "generate MODEL --ids 1 --max-new-tokens 3"},
     0},
    {"marian-shared", "decoder_ffn_dim", 16777216, {"generate MODEL --ids 1", "parity MODEL"}},
    {"gpt2-lm", "n_positions", 16777216, {"generate MODEL --ids 1", "inspect MODEL"}},
    {"gpt2-lm", "n_embd", 16777216, {"generate MODEL --ids 1", "cost CONFIG"}},
    {"vit-classify", "image_size", 65536, {"predict MODEL IMAGE", "inspect MODEL IMAGE"}},
    {"vit-classify", "image_size", 16777216, {"predict MODEL IMAGE", "inspect MODEL", "cost CONFIG"}},
    {"vit-classify", "num_channels", 16777216, {"predict MODEL IMAGE"}},
    {"resnet-basic", "depths", {1, 1'000'000'000, 1}, {"predict MODEL IMAGE", "inspect MODEL", "cost CONFIG"}},
    {"resnet-basic", "embedding_size", 16777216, {"predict MODEL IMAGE", "parity MODEL"}}};

// A child begins as a copy of this process, and the kernel may count that copy in the child's peak.
int64_t peak_of_this_process() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return int64_t{used.ru_maxrss} * 1024;
}

TEST(HostileCommands, use_no_more_time_and_memory_than_the_original_model) {
  for (const HostileCase& each : kCases) {
    const TextFolder folder(each.fixture);
    const std::string whole = get(folder / "config.json");
    put(folder / "data.tsv", "text\tlabel\nhello\t0\n");
    write_png(folder / "a.png", Image{32, 32, std::vector<uint8_t>(3 * 32 * 32, 90)});
    for (const std::string& command : each.commands) {
      std::vector<std::string> arguments;
      std::istringstream text(command);
      for (std::string word; text >> word;)
        arguments.push_back(word == "MODEL"    ? folder.path().string()
                            : word == "IMAGE"  ? (folder / "a.png").string()
                            : word == "TSV"    ? (folder / "data.tsv").string()
                            : word == "NEW"    ? (folder / "new").string()
                            : word == "CONFIG" ? (folder / "config.json").string()
                                               : word);
      put(folder / "config.json", whole);
      const Measured plain = measured(arguments);
      folder.change(each.key, each.value);
      const Measured hostile = measured(arguments);
      const std::string what = each.fixture + ": " + each.key + " = " + each.value.dump() + ": heed " + command + "\n" + hostile.output;
      EXPECT_EQ(hostile.exit_code, each.exit_code) << what;
      EXPECT_EQ(hostile.output.find("unexpected"), std::string::npos) << what;
      if (kSanitized) continue;
      EXPECT_LT(hostile.seconds - plain.seconds, 2) << what;  // allocating the declared size would take minutes
      EXPECT_LT(hostile.bytes - std::max(plain.bytes, peak_of_this_process()), int64_t{64} << 20) << what;
    }
  }
}

TEST(HostileCommands, unsupported_image_sizes_are_exit_code_3) {
  const Folder folder;
  std::filesystem::copy(fixture("vit-classify"), folder / "vit");
  put(folder / "vit/preprocessor_config.json", R"({"image_processor_type": "ViTImageProcessor", "size": {"height": 16, "width": 48}})");
  std::filesystem::create_directories(folder / "data/test/LABEL_0");
  for (const char* name : {"a.png", "data/test/LABEL_0/a.png"})
    write_png(folder / name, Image{32, 32, std::vector<uint8_t>(3 * 32 * 32, 90)});
  const std::string model = (folder / "vit").string(), image = (folder / "a.png").string();
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"predict", model, image}, {"inspect", model, image}, {"eval", model, (folder / "data").string()}}) {
    const Measured ran = measured(arguments);
    EXPECT_EQ(ran.exit_code, 3) << arguments[0] << ": " << ran.output;
    EXPECT_NE(ran.output.find("preprocessor_config.json: makes images of 48 x 16 pixels, the model takes 32 x 32"), std::string::npos)
        << ran.output;
  }
}

}  // namespace
}  // namespace heed::test
