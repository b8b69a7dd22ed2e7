// Processes that are killed, hang, disagree or are stopped.
#include "tests/dist/job.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

Arguments start_arguments(const Folder& folder, const std::string& name) {
  return {"train",    "classify", "data=shapes:64", "layers=1",    "width=32", "heads=2", "patch=8",
          "batch=16", "epochs=4", "save_every=1",   "dropout=0.1", "shards=8", "--runs",  folder.path().string(),
          "--name",   name};
}
Path run_of(const Folder& folder, const std::string& name) { return folder / ("classify/" + name); }
Arguments resume_arguments(const Path& run) { return {"train", "--resume", run.string()}; }
bool reached(const Path& run, int step) {
  return fs::exists(run / ("checkpoints/step-" + std::string(step < 10 ? "000000" : "00000") + std::to_string(step) + ".safetensors"));
}
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

size_t occurrences(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

struct Processes : testing::Test {
  void SetUp() override {
    if (!has_processes()) GTEST_SKIP() << "no mpirun, or heed was built without MPI";
  }
  const Folder folder;
};

TEST_F(Processes, lost_ones_end_the_job_which_resumes_with_other_numbers_and_the_same_bits) {
  Job whole(0, start_arguments(folder, "whole"), folder / "out");
  ASSERT_EQ(whole.wait(), 0) << whole.output();
  const Path run = run_of(folder, "killed");
  int step = 4;
  for (const int processes : {4, 1}) {
    const Arguments sharded{"shard_optimizer=true"};
    Job job(processes, fs::exists(run) ? resume_arguments(run) : start_arguments(folder, "killed") + sharded, folder / "out");
    ASSERT_TRUE(job.wait_until([&] { return reached(run, step); })) << job.output();
    const pid_t lost = job.process_of(processes - 1);
    ASSERT_GT(lost, 0);
    ::kill(lost, SIGKILL);
    const Clock::time_point start = Clock::now();
    EXPECT_NE(job.wait(), 0);
    EXPECT_LT(seconds_since(start), 30);
    EXPECT_NE(job.output().find("rank " + std::to_string(processes - 1)), std::string::npos) << job.output();  // mpirun says so itself
    step += 4;
  }
  Job rest(2, resume_arguments(run), folder / "out");
  ASSERT_EQ(rest.wait(), 0) << rest.output();
  for (const char* file : {"last/model.safetensors", "best/model.safetensors", "metrics.jsonl", "evaluation.json"}) {
    EXPECT_FALSE(get(run_of(folder, "whole") / file).empty()) << file;
    EXPECT_TRUE(get(run / file) == get(run_of(folder, "whole") / file)) << file;
  }
}

TEST_F(Processes, hanging_ones_end_the_job) {
  const Path run = run_of(folder, "hanging");
  Job job(3, start_arguments(folder, "hanging"), folder / "out");
  ASSERT_TRUE(job.wait_until([&] { return reached(run, 2); })) << job.output();
  ::kill(job.process_of(1), SIGSTOP);
  const Clock::time_point start = Clock::now();
  EXPECT_NE(job.wait(), 0);
  EXPECT_LT(seconds_since(start), 30);
  EXPECT_EQ(occurrences(job.output(), "has sent no sign of life for 3 s"), 1u) << job.output();
  EXPECT_NE(job.output().find("heed: rank 1 on "), std::string::npos) << job.output();
}

TEST_F(Processes, save_once_when_they_are_stopped) {
  const Path run = run_of(folder, "stopped");
  Arguments arguments = start_arguments(folder, "stopped");
  std::replace(arguments.begin(), arguments.end(), std::string("epochs=4"), std::string("epochs=1000"));
  std::replace(arguments.begin(), arguments.end(), std::string("save_every=1"), std::string("save_every=3"));
  Job job(2, arguments, folder / "out");
  ASSERT_TRUE(job.wait_until([&] { return reached(run, 3); })) << job.output();
  job.send(SIGINT);
  EXPECT_NE(job.wait(), 0);
  EXPECT_EQ(occurrences(job.output(), "train: stopped and saved after step "), 1u) << job.output();
  EXPECT_NE(get(run / "run.json").find("stopped"), std::string::npos);
}

TEST_F(Processes, with_other_settings_or_data_are_refused) {
  Arguments other = start_arguments(folder, "other");
  other.push_back("rate=0.5");
  Job settings(1, start_arguments(folder, "other"), folder / "out", {.others = Arguments{":", "-n", "1", HEED_PROGRAM} + other});
  EXPECT_EQ(settings.wait(), 2) << settings.output();
  EXPECT_EQ(occurrences(settings.output(), "settings differ between processes: rate is 0.5 for rank 1 on "), 1u) << settings.output();
  EXPECT_NE(settings.output().find(" for rank 0 on "), std::string::npos) << settings.output();
  EXPECT_FALSE(fs::exists(run_of(folder, "other")));

  // The same path, with other contents for each process.
  for (const char* place : {"a", "b"}) {
    fs::create_directory(folder / place);
    put(folder / (std::string(place) + "/texts.tsv"),
        "text\tlabel\ngood day\tyes\nbad day\tno\nnice day\tyes\n" + std::string(place) + " day\tno\n");
  }
  const Arguments arguments{"train",   "sentiment", "data=/proc/self/cwd/texts.tsv", "layers=1", "width=16",
                            "heads=1", "--runs",    folder.path().string(),          "--name",   "data"};
  const Arguments second{":", "-n", "1", "--wdir", (folder / "b").string(), HEED_PROGRAM};
  Job data(1, arguments, folder / "out", {.others = second + arguments, .directory = folder / "a"});
  EXPECT_EQ(data.wait(), 2) << data.output();
  EXPECT_EQ(occurrences(data.output(), "data differ between processes: train "), 1u) << data.output();
}

TEST_F(Processes, need_a_shard_each) {
  Arguments arguments = start_arguments(folder, "few");
  std::replace(arguments.begin(), arguments.end(), std::string("shards=8"), std::string("shards=1"));
  Job job(2, arguments, folder / "out");
  EXPECT_EQ(job.wait(), 2);
  EXPECT_EQ(occurrences(job.output(), "2 processes, but shards=1: expected at least one shard for each process"), 1u) << job.output();
}

TEST_F(Processes, diverge_together) {
  Arguments arguments = start_arguments(folder, "diverged") + Arguments{"rate=1e30", "clip=0", "warmup=0"};
  Job job(2, arguments, folder / "out");
  EXPECT_EQ(job.wait(), 4) << job.output();
  EXPECT_EQ(occurrences(job.output(), "heed: classify: the "), 1u) << job.output();
}

TEST_F(Processes, train_with_an_all_reduce_in_any_order) {
  Arguments arguments = start_arguments(folder, "plain");
  std::replace(arguments.begin(), arguments.end(), std::string("shards=8"), std::string("shards=0"));
  Job job(2, arguments, folder / "out");
  EXPECT_EQ(job.wait(), 0) << job.output();
  EXPECT_NE(get(run_of(folder, "plain") / "config.toml").find("shards = \"0\""), std::string::npos);
}

TEST_F(Processes, run_other_commands_once) {
  Job job(3, {"cost", "vit-tiny"}, folder / "out");
  EXPECT_EQ(job.wait(), 0) << job.output();
  Job alone(0, {"cost", "vit-tiny"}, folder / "alone");
  EXPECT_EQ(alone.wait(), 0);
  EXPECT_EQ(job.output(), alone.output());
}

}  // namespace
}  // namespace heed::test
