// Training that is killed at any moment, loses its newest checkpoint or runs out of disk space, and is resumed: the result has the same
// bytes as that of an uninterrupted run.
#include <chrono>
#include <thread>

#include "heed/core/random.h"
#include "tests/cli/checkpoints.h"
#include "tests/cli/child.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Wide enough that a checkpoint is larger than the event file with its images: on a full disk, the checkpoint fails first.
std::vector<std::string> start_arguments(const Folder& folder, const std::string& name) {
  return {"train",          "classify",
          "data=shapes:64", "layers=1",
          "width=48",       "heads=2",
          "patch=8",        "batch=16",
          "epochs=4",       "save_every=1",
          "log_every=1",    "dropout=0.1",
          "average=0.9",    "position=gaussian",
          "--runs",         folder.path().string(),
          "--name",         name};
}
Path run_of(const Folder& folder, const std::string& name) { return folder / ("classify/" + name); }

std::vector<std::string> resume_arguments(const Path& run) { return {"train", "--resume", run.string()}; }

void expect_same_run(const Path& run, const Path& uninterrupted) {
  for (const char* name :
       {"metrics.csv", "metrics.jsonl", "heads.jsonl", "last/model.safetensors", "best/model.safetensors", "evaluation.json"}) {
    EXPECT_FALSE(get(uninterrupted / name).empty()) << name;
    EXPECT_TRUE(get(run / name) == get(uninterrupted / name)) << name;
  }
}

Path newest_checkpoint(const Path& run) {
  Path newest;
  for (const auto& file : fs::directory_iterator(run / "checkpoints")) newest = std::max(newest, file.path());
  return newest;
}

// Whether a checkpoint or a model is being written now.
bool being_written(const Path& run) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", ignored))
    if (entry.path().filename().string().starts_with(".heed-")) return true;
  return fs::exists(run / ".last.heed-new", ignored) || fs::exists(run / ".best.heed-new", ignored);
}

// An uninterrupted run and its duration.
struct InterruptedTraining : testing::Test {
  static void SetUpTestSuite() {
    folder = std::make_unique<Folder>();
    const Clock::time_point start = Clock::now();
    ASSERT_EQ(Child(start_arguments(*folder, "uninterrupted"), *folder / "out").wait(), 0) << get(*folder / "out");
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  static void TearDownTestSuite() { folder.reset(); }

  Path uninterrupted() const { return run_of(*folder, "uninterrupted"); }
  // A run killed by SIGKILL midway, with two checkpoints.
  Path half_done(const std::string& name) const {
    const Path run = run_of(*folder, name);
    int code = 0;
    for (int attempt = 0; attempt < 20 && (code == 0 || newest_step(run) > 12); ++attempt) {  // too late, on a busy machine
      fs::remove_all(run);
      Child child(start_arguments(*folder, name), *folder / "out");
      while (!child.ended() && newest_step(run) < 6) std::this_thread::sleep_for(std::chrono::microseconds(200));
      child.send(SIGKILL);
      code = child.wait();
    }
    EXPECT_EQ(code, -SIGKILL) << get(*folder / "out");
    return run;
  }
  // Resumes the run to its end. -> the output
  std::string finished(const Path& run) const {
    EXPECT_EQ(Child(resume_arguments(run), *folder / "out").wait(), 0) << get(*folder / "out");
    return get(*folder / "out");
  }

  static inline std::unique_ptr<Folder> folder;
  static inline double seconds = 0;
};

TEST_F(InterruptedTraining, resumes_with_the_same_bytes_after_thirty_kills) {
  Rng rng(17);
  double span = seconds;  // kill times are within this span
  int kills = 0, while_writing = 0, runs = 0;
  while (kills < 30) {
    const std::string name = "killed-" + std::to_string(runs++);
    const Path run = run_of(*folder, name);
    bool complete = false;
    while (!complete) {
      const bool started = fs::exists(run / "config.toml");
      if (!started) fs::remove_all(run);  // killed before there was anything to resume
      const double moment = kills < 30 ? span * static_cast<double>(rng.below(1000)) / 1000 : 3600;
      const bool at_a_write = rng.below(3) == 0;
      Child child(started ? resume_arguments(run) : start_arguments(*folder, name), *folder / "out");
      const Clock::time_point end = Clock::now() + std::chrono::microseconds(static_cast<int64_t>(1e6 * moment));
      while (!child.ended() && Clock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds(200));
      while (kills < 30 && at_a_write && !child.ended() && !being_written(run)) std::this_thread::yield();
      while_writing += !child.ended() && at_a_write;
      child.send(SIGKILL);
      const int code = child.wait();
      ASSERT_TRUE(code == 0 || code == -SIGKILL) << code << ": " << get(*folder / "out");
      complete = code == 0;
      kills += !complete;
      if (complete) span *= 0.8;  // the first run may have been slow
    }
    expect_same_run(run, uninterrupted());
    fs::remove_all(run);
  }
  EXPECT_GE(while_writing, 3);
}

TEST_F(InterruptedTraining, skips_a_damaged_checkpoint) {
  for (const bool truncated : {true, false}) {
    const Path run = half_done(truncated ? "truncated" : "flipped"), newest = newest_checkpoint(run);
    std::string bytes = get(newest);
    ASSERT_GT(bytes.size(), 10000u);
    if (truncated)
      bytes.resize(bytes.size() * 2 / 3);
    else
      bytes[bytes.size() - 3001] ^= 4;
    put(newest, bytes);
    const std::string output = finished(run);
    EXPECT_NE(output.find(newest.filename().string()), std::string::npos) << output;
    EXPECT_NE(output.find("; using the previous checkpoint instead"), std::string::npos) << output;
    EXPECT_NE(output.find("resumes from step "), std::string::npos) << output;
    expect_same_run(run, uninterrupted());
  }
}

TEST_F(InterruptedTraining, reports_a_full_disk_and_resumes_with_free_space) {
  const Path run = half_done("full"), newest = newest_checkpoint(run);
  const auto checkpoint_bytes = static_cast<rlim_t>(fs::file_size(newest));
  {
    Child child(resume_arguments(run), *folder / "out", checkpoint_bytes - 1000);
    EXPECT_EQ(child.wait(), 1);
    const std::string output = get(*folder / "out");
    EXPECT_NE(output.find("heed: " + run.string()), std::string::npos) << output;
    EXPECT_NE(output.find("step-"), std::string::npos) << output;
  }
  EXPECT_EQ(newest_checkpoint(run), newest);
  finished(run);
  expect_same_run(run, uninterrupted());
}

}  // namespace
}  // namespace heed::test
