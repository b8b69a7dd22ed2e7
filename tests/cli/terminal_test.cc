// Output on a terminal, and the effect of Ctrl-C and a closed window.
#include <gtest/gtest.h>

#include <thread>

#include "heed/cli/signal_guard.h"
#include "heed/io/temporary.h"
#include "tests/cli/child.h"
#include "tests/cli/terminal.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

// A run of many small steps.
std::vector<std::string> long_run(const Folder& folder) {
  return {"train",   "classify", "data=shapes:400", "layers=1",    "width=16", "heads=2",
          "patch=8", "batch=10", "loaders=0",       "epochs=1000", "--runs",   folder.path().string()};
}
void expect_saved(const Folder& folder) {
  EXPECT_FALSE(std::filesystem::is_empty(folder / "classify/001/checkpoints"));
  EXPECT_NE(get(folder / "classify/001/log.txt").size(), 0u);
}

std::string epoch_text(int64_t epoch) {
  const std::string number = std::to_string(epoch);
  return "epoch " + std::string(4 - number.size(), ' ') + number + "/1000";
}

TEST(OnTerminal, lines_follow_the_width_of_the_terminal) {
  const Folder folder;
  OnTerminal heed(long_run(folder), 200);
  ASSERT_TRUE(heed.wait_for("% of peak")) << heed.output();
  heed.resize(50);
  const std::string epochs = get(folder / "classify/001/metrics.csv");
  const int64_t finished = std::max<int64_t>(0, std::count(epochs.begin(), epochs.end(), '\n') - 1);  // the next one began before
  ASSERT_TRUE(heed.wait_for(epoch_text(finished + 4))) << heed.output();
  const size_t begin_of_two = heed.output().find(epoch_text(finished + 2));
  ASSERT_NE(begin_of_two, std::string::npos) << heed.output();
  const std::string later = heed.output().substr(begin_of_two, heed.output().find(epoch_text(finished + 4)) - begin_of_two);
  size_t lines = 0, drawn = 0;
  for (size_t begin = 0; begin < later.size();) {  // text between two carriage returns
    const size_t end = std::min(later.find_first_of("\r\n", begin), later.size());
    std::string line = later.substr(begin, end - begin);
    for (size_t code = line.find('\x1b'); code != std::string::npos; code = line.find('\x1b'))
      line.erase(code, line.find_first_of("mKJ", code) - code + 1);
    EXPECT_LE(line.size(), 50u) << line;
    drawn += !line.empty();
    lines += end < later.size() && later[end] == '\n';
    begin = end + 1;
  }
  EXPECT_GE(drawn, 2u);
  EXPECT_EQ(lines, 2u) << later;  // per epoch, not per step
  heed.type("\x03");
  EXPECT_EQ(heed.wait(), 130) << heed.output();
  EXPECT_NE(heed.output().find("stopped and saved after step"), std::string::npos) << heed.output();
  expect_saved(folder);
}

TEST(OnTerminal, colours_respect_no_color) {
  const Folder folder;
  const std::vector<std::string> words{"train",    "classify", "data=shapes:60",      "layers=1", "width=16", "heads=2",
                                       "epochs=1", "--runs",   folder.path().string()};
  OnTerminal plain(words, 80, {"NO_COLOR=1"}), styled(words, 80);
  EXPECT_EQ(plain.wait(), 0) << plain.output();
  EXPECT_EQ(styled.wait(), 0) << styled.output();
  EXPECT_NE(styled.output().find("\x1b[32mbest\x1b[0m"), std::string::npos) << styled.output();
  EXPECT_EQ(plain.output().find("\x1b[32m"), std::string::npos) << plain.output();
  OnTerminal wrong({"nothing"}, 80), wrong_plain({"nothing"}, 80, {"NO_COLOR=1"}), help({"--help"}, 80);
  EXPECT_EQ(wrong.wait(), 2);
  EXPECT_EQ(wrong.output(), "\x1b[31mheed:\x1b[0m unknown command 'nothing'\r\n");
  wrong_plain.wait();
  EXPECT_EQ(wrong_plain.output(), "heed: unknown command 'nothing'\r\n");
  EXPECT_EQ(help.wait(), 0);
  EXPECT_NE(help.output().find("\x1b[1mExamples:\x1b[0m\r\n"), std::string::npos) << help.output();
}

TEST(OnTerminal, closing_the_window_saves_like_ctrl_c) {
  const Folder folder;
  OnTerminal heed(long_run(folder), 80);
  ASSERT_TRUE(heed.wait_for("epoch    2/1000")) << heed.output();
  heed.hang_up();
  EXPECT_EQ(heed.wait(), 130);
  expect_saved(folder);
}

TEST(Stop, nohup_is_respected_and_sighup_saves) {
  const Folder folder;
  Child heed(long_run(folder), folder / "out");
  while (!heed.ended() && get(folder / "out").find("epoch    1/1000") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  heed.send(SIGHUP);
  EXPECT_EQ(heed.wait(), 130) << get(folder / "out");
  EXPECT_NE(get(folder / "out").find("stopped and saved after step"), std::string::npos) << get(folder / "out");
  expect_saved(folder);
  if (kSanitized) return;  // sanitizers do not support threads after a fork
  const pid_t ignoring = ::fork();
  if (ignoring == 0) {
    ::signal(SIGHUP, SIG_IGN);
    const cli::SignalGuard guard;
    ::kill(::getpid(), SIGHUP);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ::_exit(7);
  }
  int status = 0;
  ::waitpid(ignoring, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Stop, the_final_evaluation_stops_at_ctrl_c_and_is_repeated) {
  const Folder folder;
  const Path run = folder / "classify/001";
  int code = 0;
  for (int attempt = 0; attempt < 20 && code == 0; ++attempt) {  // on a busy machine it may finish before the signal
    std::filesystem::remove_all(run);
    Child heed({"train", "classify", "data=shapes:3000", "layers=2", "width=64", "heads=4", "steps=1", "--runs", folder.path().string()},
               folder / "out");
    while (!heed.ended() && get(folder / "out").find("\nepoch ") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    heed.send(SIGINT);
    code = heed.wait();
  }
  EXPECT_EQ(code, 130) << get(folder / "out");
  EXPECT_NE(get(folder / "out").find("stopped and saved while the best model was evaluated; resume with: heed train --resume "),
            std::string::npos)
      << get(folder / "out");
  EXPECT_FALSE(std::filesystem::exists(run / "evaluation.json"));
  EXPECT_EQ(Child({"train", "--resume", run.string()}, folder / "out").wait(), 0) << get(folder / "out");
  EXPECT_TRUE(std::filesystem::exists(run / "evaluation.json"));
}

// The exit code of a process with a SignalGuard after `signals` SIGINTs; 7 or 8 if it did not end the process.
int exit_code_after(int signals, bool save_first, const Path& temporary) {
  const pid_t process = ::fork();
  if (process == 0) {
    ::signal(SIGINT, SIG_DFL);
    ::setenv("TMPDIR", temporary.c_str(), 1);
    const TemporaryFolder folder;
    put(folder.path() / "file", "content");
    cli::SignalGuard guard;
    if (save_first) guard.save_first();
    ::kill(::getpid(), SIGINT);
    for (int i = 0; i < 6000 && !guard.stop_requested(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (signals == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(150));  // sooner, it would count as the same one
      ::kill(::getpid(), SIGINT);
      std::this_thread::sleep_for(std::chrono::minutes(1));
    }
    ::_exit(guard.stop_requested() ? 7 : 8);
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Stop, the_second_ctrl_c_exits_and_removes_temporary_folders) {
  if (kSanitized) GTEST_SKIP() << "sanitizers do not support threads after a fork";
  const Folder folder;
  EXPECT_EQ(exit_code_after(1, true, folder.path()), 7);
  EXPECT_FALSE(std::filesystem::is_empty(folder.path()));
  std::filesystem::remove_all(folder.path());
  std::filesystem::create_directory(folder.path());
  EXPECT_EQ(exit_code_after(2, true, folder.path()), 130);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(exit_code_after(1, false, folder.path()), 130);  // nothing to save yet
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace heed::test
