// Training that is killed at any moment, or loses its newest checkpoint, or its disk, and goes on: it leaves the same bytes as training
// that was left in peace.
#include <chrono>
#include <thread>

#include "heed/core/random.h"
#include "tests/cli/child.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// So wide that a checkpoint is larger than the event file with its pictures: a disk that is full is first too small for a checkpoint.
std::vector<std::string> begin_words(const Folder& folder, const std::string& name) {
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

std::vector<std::string> resume_words(const Path& run) { return {"train", "--resume", run.string()}; }

void expect_same_run(const Path& run, const Path& peaceful) {
  for (const char* name :
       {"metrics.csv", "metrics.jsonl", "heads.jsonl", "last/model.safetensors", "best/model.safetensors", "evaluation.json"}) {
    EXPECT_FALSE(get(peaceful / name).empty()) << name;
    EXPECT_TRUE(get(run / name) == get(peaceful / name)) << name;
  }
}

Path newest_checkpoint(const Path& run) {
  Path newest;
  for (const auto& file : fs::directory_iterator(run / "checkpoints")) newest = std::max(newest, file.path());
  return newest;
}

// Whether a checkpoint or a model is being written just now.
bool being_written(const Path& run) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", ignored))
    if (entry.path().filename().string().starts_with(".heed-")) return true;
  return fs::exists(run / ".last.heed-new", ignored) || fs::exists(run / ".best.heed-new", ignored);
}

// A run in peace, and how long it took.
struct Killed : testing::Test {
  static void SetUpTestSuite() {
    folder = std::make_unique<Folder>();
    const Clock::time_point start = Clock::now();
    ASSERT_EQ(Child(begin_words(*folder, "peaceful"), *folder / "out").wait(), 0) << get(*folder / "out");
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  static void TearDownTestSuite() { folder.reset(); }

  Path peaceful() const { return run_of(*folder, "peaceful"); }
  // A run that was killed with SIGKILL some way through, with two checkpoints.
  Path half_done(const std::string& name) const {
    Child child(begin_words(*folder, name), *folder / "out");
    const Path run = run_of(*folder, name);
    while (!child.ended() && !fs::exists(run / "checkpoints/step-0000006.safetensors"))
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    child.send(SIGKILL);
    child.wait();
    return run;
  }
  // Goes on to the end. -> what was said
  std::string finished(const Path& run) const {
    EXPECT_EQ(Child(resume_words(run), *folder / "out").wait(), 0) << get(*folder / "out");
    return get(*folder / "out");
  }

  static inline std::unique_ptr<Folder> folder;
  static inline double seconds = 0;
};

TEST_F(Killed, at_thirty_moments_it_goes_on_with_the_same_bytes) {
  Rng rng(17);
  double span = seconds;  // in which moments lie
  int kills = 0, while_writing = 0, runs = 0;
  while (kills < 30) {
    const std::string name = "killed-" + std::to_string(runs++);
    const Path run = run_of(*folder, name);
    bool complete = false;
    while (!complete) {
      const bool begun = fs::exists(run / "config.toml");
      if (!begun) fs::remove_all(run);  // killed before there was anything to go on with
      const double moment = kills < 30 ? span * static_cast<double>(rng.below(1000)) / 1000 : 3600;
      const bool at_a_write = rng.below(3) == 0;
      Child child(begun ? resume_words(run) : begin_words(*folder, name), *folder / "out");
      const Clock::time_point end = Clock::now() + std::chrono::microseconds(static_cast<int64_t>(1e6 * moment));
      while (!child.ended() && Clock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds(200));
      while (kills < 30 && at_a_write && !child.ended() && !being_written(run)) std::this_thread::yield();
      while_writing += !child.ended() && at_a_write;
      child.send(SIGKILL);
      const int code = child.wait();
      ASSERT_TRUE(code == 0 || code == -SIGKILL) << code << ": " << get(*folder / "out");
      complete = code == 0;
      kills += !complete;
      if (complete) span *= 0.8;  // the first run may have been slow by chance
    }
    expect_same_run(run, peaceful());
    fs::remove_all(run);
  }
  EXPECT_GE(while_writing, 3);
}

TEST_F(Killed, a_damaged_checkpoint_is_passed_over) {
  for (const bool truncated : {true, false}) {
    const Path run = half_done(truncated ? "truncated" : "flipped"), newest = newest_checkpoint(run);
    std::string bytes = get(newest);
    ASSERT_GT(bytes.size(), 10000u);
    if (truncated)
      bytes.resize(bytes.size() * 2 / 3);
    else
      bytes[bytes.size() - 3001] ^= 4;
    put(newest, bytes);
    const std::string said = finished(run);
    EXPECT_NE(said.find(newest.filename().string()), std::string::npos) << said;
    EXPECT_NE(said.find("; this checkpoint is passed over for the one before"), std::string::npos) << said;
    EXPECT_NE(said.find("goes on from step "), std::string::npos) << said;
    expect_same_run(run, peaceful());
  }
}

TEST_F(Killed, a_full_disk_is_named_and_the_run_goes_on_when_there_is_room) {
  const Path run = half_done("full"), newest = newest_checkpoint(run);
  const auto checkpoint_bytes = static_cast<rlim_t>(fs::file_size(newest));
  {
    Child child(resume_words(run), *folder / "out", checkpoint_bytes - 1000);
    EXPECT_EQ(child.wait(), 1);
    const std::string said = get(*folder / "out");
    EXPECT_NE(said.find("heed: " + run.string()), std::string::npos) << said;
    EXPECT_NE(said.find("step-"), std::string::npos) << said;
  }
  EXPECT_EQ(newest_checkpoint(run), newest);
  finished(run);
  expect_same_run(run, peaceful());
}

}  // namespace
}  // namespace heed::test
