// Processes that are killed, hang, disagree or are stopped.
#include "heed/io/json.h"
#include "tests/cli/checkpoints.h"
#include "tests/dist/job.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// 4 steps an epoch
Arguments start_arguments(const Folder& folder, const std::string& name, int epochs = 4) {
  return {"train",
          "classify",
          "data=shapes:64",
          "layers=1",
          "width=32",
          "heads=2",
          "patch=8",
          "batch=16",
          "epochs=" + std::to_string(epochs),
          "save_every=1",
          "dropout=0.1",
          "shards=8",
          "--runs",
          folder.path().string(),
          "--name",
          name};
}
Path run_of(const Folder& folder, const std::string& name) { return folder / ("classify/" + name); }
Arguments resume_arguments(const Path& run) { return {"train", "--resume", run.string()}; }
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

TEST_F(Processes, end_if_one_is_killed_and_resume_with_other_counts_and_the_same_bits) {
  constexpr int epochs = 8;  // so many that no job ends before it is killed
  Job whole(0, start_arguments(folder, "whole", epochs), folder / "out");
  ASSERT_EQ(whole.wait(), 0) << whole.output();
  const Path run = run_of(folder, "killed");
  int step = 4;
  for (const int processes : {4, 1}) {
    const Arguments sharded{"shard_optimizer=true"};
    Job job(processes, fs::exists(run) ? resume_arguments(run) : start_arguments(folder, "killed", epochs) + sharded, folder / "out");
    ASSERT_TRUE(job.wait_until([&] { return newest_step(run) >= step; })) << job.output();
    const pid_t lost = job.process_of(processes - 1);
    ASSERT_GT(lost, 0);
    ::kill(lost, SIGKILL);
    const Clock::time_point start = Clock::now();
    EXPECT_NE(job.wait(), 0);
    EXPECT_LT(seconds_since(start), 30);
    EXPECT_NE(job.output().find("rank " + std::to_string(processes - 1)), std::string::npos) << job.output();  // printed by mpirun
    step += 4;
  }
  Job rest(8, resume_arguments(run), folder / "out");
  ASSERT_EQ(rest.wait(), 0) << rest.output();
  for (const char* file : {"last/model.safetensors", "best/model.safetensors", "metrics.jsonl", "evaluation.json"}) {
    EXPECT_FALSE(get(run_of(folder, "whole") / file).empty()) << file;
    EXPECT_TRUE(get(run / file) == get(run_of(folder, "whole") / file)) << file;
  }
}

TEST_F(Processes, end_if_one_hangs) {
  const Path run = run_of(folder, "hanging");
  Job job(3, start_arguments(folder, "hanging", 1000), folder / "out", {.variables = {{"HEED_PROCESS_TIMEOUT", "5"}}});
  ASSERT_TRUE(job.wait_until([&] { return newest_step(run) >= 2; })) << job.output();
  const pid_t hanging = job.process_of(1);
  ASSERT_GT(hanging, 0);
  ::kill(hanging, SIGSTOP);
  const Clock::time_point start = Clock::now();
  EXPECT_NE(job.wait(), 0);
  EXPECT_LT(seconds_since(start), 40);
  const std::string output = job.output();
  EXPECT_EQ(occurrences(output, " has sent no heartbeat for "), 1u) << output;  // 5 s, on a busy machine 6
  EXPECT_NE(output.find("heed: rank 1 on "), std::string::npos) << output;
}

TEST_F(Processes, can_send_gradients_after_backward) {
  Job alone(0, start_arguments(folder, "alone"), folder / "out");
  Job late(2, start_arguments(folder, "late"), folder / "late", {.variables = {{"HEED_BUCKET_BYTES", "0"}}});
  EXPECT_EQ(alone.wait(), 0) << alone.output();
  EXPECT_EQ(late.wait(), 0) << late.output();
  EXPECT_TRUE(get(run_of(folder, "late") / "last/model.safetensors") == get(run_of(folder, "alone") / "last/model.safetensors"));
  Job wrong(2, start_arguments(folder, "wrong"), folder / "wrong", {.variables = {{"HEED_BUCKET_BYTES", "-1"}}});
  EXPECT_EQ(wrong.wait(), 2);
  EXPECT_EQ(occurrences(wrong.output(), "HEED_BUCKET_BYTES is '-1', expected bytes"), 1u) << wrong.output();
}

TEST_F(Processes, save_once_when_stopped) {
  // USR1 reaches the processes, and mpirun prints what they say. INT makes mpirun end them, which may drop their last lines.
  for (const int number : {SIGUSR1, SIGINT}) {
    const std::string name = number == SIGINT ? "interrupted" : "stopped";
    const Path run = run_of(folder, name);
    Arguments arguments = start_arguments(folder, name, 1000);
    std::replace(arguments.begin(), arguments.end(), std::string("save_every=1"), std::string("save_every=3"));
    Job job(2, arguments, folder / "out", {.variables = {{"OMPI_MCA_odls_base_sigkill_timeout", "3"}}});
    ASSERT_TRUE(job.wait_until([&] { return newest_step(run) >= 3; })) << job.output();
    job.send(number);
    EXPECT_NE(job.wait(), 0);
    if (number == SIGUSR1) {
      EXPECT_EQ(occurrences(job.output(), "train: stopped and saved after step "), 1u) << job.output();
    }
    EXPECT_EQ(read_json(run / "run.json").at("state"), "stopped");
  }
}

TEST_F(Processes, are_refused_if_their_settings_or_data_differ) {
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

TEST_F(Processes, are_refused_without_a_shard_for_each) {
  Arguments arguments = start_arguments(folder, "few");
  std::replace(arguments.begin(), arguments.end(), std::string("shards=8"), std::string("shards=1"));
  Job job(2, arguments, folder / "out");
  EXPECT_EQ(job.wait(), 2);
  EXPECT_EQ(occurrences(job.output(), "2 processes, but shards=1: expected at least one shard for each process"), 1u) << job.output();
}

TEST_F(Processes, report_divergence_once) {
  Arguments arguments = start_arguments(folder, "diverged") + Arguments{"rate=1e30", "clip=0", "warmup=0"};
  Job job(2, arguments, folder / "out");
  EXPECT_EQ(job.wait(), 4) << job.output();
  EXPECT_EQ(occurrences(job.output(), "heed: classify: the "), 1u) << job.output();
}

TEST_F(Processes, train_without_fixed_summation_order) {
  Arguments arguments = start_arguments(folder, "plain");
  std::replace(arguments.begin(), arguments.end(), std::string("shards=8"), std::string("shards=0"));
  Job job(2, arguments, folder / "out");
  EXPECT_EQ(job.wait(), 0) << job.output();
  EXPECT_NE(get(run_of(folder, "plain") / "config.toml").find("shards = \"0\""), std::string::npos);
}

// With emulated GPU memory, which only kernels may access: gradients are sent through host memory.
TEST_F(Processes, give_the_bits_of_one_process_on_one_gpu) {
  const Arguments arguments{"steps=2", "device=cuda"};
  const JobOptions emulated{.variables = {{"HEED_EMULATE_CUDA", "1"}}};
  Job one(0, start_arguments(folder, "one") + arguments, folder / "one", emulated);
  Job two(2, start_arguments(folder, "two") + arguments + Arguments{"shard_optimizer=true"}, folder / "two", emulated);
  EXPECT_EQ(one.wait(), 0) << one.output();
  EXPECT_EQ(two.wait(), 0) << two.output();
  EXPECT_FALSE(get(run_of(folder, "one") / "last/model.safetensors").empty());
  EXPECT_TRUE(get(run_of(folder, "one") / "last/model.safetensors") == get(run_of(folder, "two") / "last/model.safetensors"));
}

TEST_F(Processes, print_the_output_of_other_commands_once) {
  Job job(3, {"cost", "vit-tiny"}, folder / "out");
  EXPECT_EQ(job.wait(), 0) << job.output();
  Job alone(0, {"cost", "vit-tiny"}, folder / "alone");
  EXPECT_EQ(alone.wait(), 0);
  EXPECT_EQ(job.output(), alone.output());
}

}  // namespace
}  // namespace heed::test
