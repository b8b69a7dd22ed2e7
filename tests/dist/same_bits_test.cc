// Several processes give the same bits as one, for every task.
#include "heed/train/shards.h"
#include "tests/cli/checkpoints.h"
#include "tests/dist/job.h"

namespace heed::test {
namespace {

std::string lines(int count, const std::function<std::string(int i)>& line) {
  std::string out;
  for (int i = 0; i < count; ++i) out += line(i) + "\n";
  return out;
}

std::string sentence(int i) {
  const char* const who[]{"the old house", "a small dog", "this film", "my sister"};
  const char* const what[]{"is good today", "was not there at all", "has seen it twice", "likes long rainy afternoons"};
  return std::string(who[i % 4]) + " " + what[i / 4 % 4] + " number " + std::to_string(i % 7);
}

struct TaskCase {
  const char* name;
  const char* task;
  Arguments arguments;
};
void PrintTo(const TaskCase& task, std::ostream* out) { *out << task.name; }

const Arguments kTransformer{"layers=1", "width=32", "heads=2", "dropout=0.1"};
// Batches of 20 samples in 8 shards: shards of 2 and of 3, and a last batch that leaves shards empty.
const std::vector<TaskCase> kTasks{
    {"classify", "classify",
     kTransformer + Arguments{"data=shapes:64", "patch=8", "position=gaussian", "pad=2", "flip=true", "mixup=0.2", "average=0.9"}},
    {"batch_norm",
     "classify",
     {"data=shapes:64", "preset=resnet18", "model.hidden_sizes=8,16", "model.depths=1,1", "model.embedding_size=8", "flip=true"}},
    {"accumulation", "classify", kTransformer + Arguments{"data=shapes:64", "patch=8", "accumulate=2", "optimizer=sgd"}},
    {"sentiment", "sentiment", kTransformer + Arguments{"data=labelled.tsv", "max_length=16"}},
    {"pairs", "pairs", kTransformer + Arguments{"data=pairs.tsv", "max_length=24"}},
    {"translate", "translate", kTransformer + Arguments{"data=translations.tsv", "max_length=20", "beams=1"}},
    {"pretrain", "pretrain", kTransformer + Arguments{"data=book.txt", "max_length=24"}},
    {"contrastive",
     "contrastive",
     {"data=scenes:64", "model.text_config.num_hidden_layers=1", "model.vision_config.num_hidden_layers=1",
      "model.vision_config.patch_size=16"}},
    {"caption",
     "caption",
     {"data=scenes:64", "model.encoder.num_hidden_layers=1", "model.decoder.num_hidden_layers=1", "model.encoder.patch_size=16"}},
    {"answers", "answers", kTransformer + Arguments{"data=questions.csv", "max_length=24", "overlap=4"}},
    {"language", "language", kTransformer + Arguments{"data=book.txt", "length=16"}},
};

void write_data(const Folder& folder) {
  put(folder / "labelled.tsv", "text\tlabel\n" + lines(70, [](int i) { return sentence(i) + (i % 4 < 2 ? "\tgood" : "\tbad"); }));
  put(folder / "pairs.tsv",
      "premise\thypothesis\tlabel\n" + lines(70, [](int i) { return sentence(i) + "\t" + sentence(i + 4) + (i % 3 ? "\tyes" : "\tno"); }));
  put(folder / "questions.csv", "question,context,answer\n" + lines(70, [](int i) {
                                  return "What number is in sentence " + std::to_string(i) + "?," + sentence(i) + "," +
                                         std::to_string(i % 7);
                                }));
  put(folder / "translations.tsv", "en\tde\n" + lines(70, [](int i) { return sentence(i) + "\t" + sentence(3 * i + 1); }));
  put(folder / "book.txt", lines(200, [](int i) { return i % 5 == 4 ? std::string() : "So " + sentence(i) + "."; }));
}

// HEED_LONG_TESTS=1: 50 steps instead of 8, and every task is resumed with other numbers of processes.
bool is_long() { return std::getenv("HEED_LONG_TESTS") != nullptr; }

struct SameBits : testing::TestWithParam<TaskCase> {
  void SetUp() override {
    if (!has_processes()) GTEST_SKIP() << "no mpirun, or heed was built without MPI";
    write_data(folder);
  }
  Arguments arguments(const std::string& name) const {
    Arguments out{"train", GetParam().task};
    for (std::string argument : GetParam().arguments) {
      if (argument.starts_with("data=") && argument.find("shapes") == argument.npos && argument.find("scenes") == argument.npos)
        argument = "data=" + (folder / argument.substr(5)).string();
      out.push_back(argument);
    }
    const Arguments length = is_long() ? Arguments{"epochs=100", "steps=50"} : Arguments{"epochs=2"};
    return out + length + Arguments{"batch=20", "shards=8", "log_every=1", "--runs", folder.path().string(), "--name", name};
  }
  Path run_of(const std::string& name) const { return folder / (std::string(GetParam().task) + "/" + name); }
  void finish(int processes, const Arguments& with, const JobOptions& options = {}) const {
    Job job(processes, with, folder / "out", options);
    EXPECT_EQ(job.wait(), 0) << job.output();
    const bool counted = job.output().find(std::to_string(processes) + " processes on 1 host") != std::string::npos;
    EXPECT_EQ(counted, processes > 0) << job.output();
  }
  void expect_same(const std::string& name, const std::string& expected) const {
    for (const char* file : {"last/model.safetensors", "best/model.safetensors", "metrics.jsonl", "metrics.csv", "evaluation.json"}) {
      EXPECT_FALSE(get(run_of(expected) / file).empty()) << file;
      EXPECT_TRUE(get(run_of(name) / file) == get(run_of(expected) / file)) << name << ": " << file;
    }
  }
  const Folder folder;
};

// With four processes and more, the optimizer state is sharded. With three, each gradient is sent in a separate message.
TEST_P(SameBits, with_1_2_3_4_and_8_processes) {
  finish(0, arguments("one"));
  for (const int processes : {2, 3, 4, 8}) {
    const std::string name = "with-" + std::to_string(processes);
    const Arguments sharded = processes >= 4 ? Arguments{"shard_optimizer=true"} : Arguments();
    JobOptions options;
    if (processes == 3) options.variables = {{"HEED_BUCKET_BYTES", "4"}};
    finish(processes, arguments(name) + sharded, options);
    expect_same(name, "one");
  }
}

TEST_P(SameBits, resumed_with_4_1_and_8_processes) {
  if (!is_long()) GTEST_SKIP() << "HEED_LONG_TESTS is not set; failures_test.cc resumes one task";
  finish(0, arguments("one"));
  const Path run = run_of("resumed");
  const Arguments again{"train", "--resume", run.string()};
  int step = 10;
  for (const int processes : {4, 1}) {
    Job job(processes, processes == 4 ? arguments("resumed") + Arguments{"save_every=1"} : again, folder / "out");
    ASSERT_TRUE(job.wait_until([&] { return newest_step(run) >= step; })) << job.output();
    const pid_t lost = job.process_of(processes - 1);
    ASSERT_GT(lost, 0);
    ::kill(lost, SIGKILL);
    EXPECT_NE(job.wait(), 0);
    step += 15;
  }
  finish(8, again);
  expect_same("resumed", "one");
}

INSTANTIATE_TEST_SUITE_P(Tasks, SameBits, testing::ValuesIn(kTasks), [](const auto& test) { return std::string(test.param.name); });

TEST(Shards, contain_every_sample_once) {
  for (const int64_t count : {1, 2, 7, 8, 16})
    for (const int64_t samples : {0, 1, 3, 8, 20, 64}) {
      std::vector<int64_t> batch(static_cast<size_t>(samples)), found;
      for (int64_t i = 0; i < samples; ++i) batch[static_cast<size_t>(i)] = 100 + i;
      const Shards shards{.count = count};
      for (int64_t shard = 0; shard < count; ++shard) {
        const std::span<const int64_t> part = shards.of(batch, shard);
        EXPECT_LE(std::ssize(part), (samples + count - 1) / count);
        found.insert(found.end(), part.begin(), part.end());
      }
      EXPECT_EQ(found, batch);
      EXPECT_TRUE(samples == 0 || !shards.of(batch, 0).empty());  // the first process always has work
    }
}

TEST(Shards, of_all_processes_are_loaded_once_and_in_order) {
  const Batches batches{{1, 2, 3, 4, 5}, {6, 7}, {8}};
  for (const int64_t accumulate : {1, 2}) {
    const Batches all =
        Shards{.count = 4, .begin = 0, .end = 4}.own_batches(std::span(batches).first(static_cast<size_t>(accumulate)), accumulate);
    Batches joined;
    for (int rank = 0; rank < 3; ++rank) {
      const auto [begin, end] = shard_range(4, rank, 3);
      for (const auto& each : Shards{.count = 4, .begin = begin, .end = end}.own_batches(
               std::span(batches).first(static_cast<size_t>(accumulate)), accumulate))
        joined.push_back(each);
    }
    EXPECT_EQ(joined, all);
  }
  const Batches expected{{1, 2}, {6}, {3}, {4}, {7}, {5}, {8}};
  EXPECT_EQ((Shards{.count = 4, .begin = 0, .end = 4}.own_batches(batches, 2)), expected);
}

}  // namespace
}  // namespace heed::test
