// What people see on a terminal, and what Ctrl-C and a closed window do.
#include <gtest/gtest.h>

#include <thread>

#include "heed/cli/stop.h"
#include "heed/io/temporary.h"
#include "tests/cli/child.h"
#include "tests/cli/terminal.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

// A run of which somebody sees many steps: they are small, and there are many of them.
std::vector<std::string> long_run(const Folder& folder) {
  return {"train",   "classify", "data=shapes:400", "layers=1",    "width=16", "heads=2",
          "patch=8", "batch=10", "loaders=0",       "epochs=1000", "--runs",   folder.path().string()};
}
void become_saved(const Folder& folder) {
  EXPECT_FALSE(std::filesystem::is_empty(folder / "classify/001/checkpoints"));
  EXPECT_NE(get(folder / "classify/001/log.txt").size(), 0u);
}

TEST(OnTerminal, lines_follow_the_width_of_the_terminal) {
  const Folder folder;
  OnTerminal heed(long_run(folder), 200);
  ASSERT_TRUE(heed.shows("% of peak")) << heed.shown();
  heed.resize(50);
  const size_t at = heed.shown().size();
  ASSERT_TRUE(heed.shows("epoch    4/1000", at)) << heed.shown();
  const std::string later = heed.shown().substr(heed.shown().find("epoch    3/1000", at));
  size_t lines = 0, drawn = 0;
  for (size_t begin = 0; begin < later.size();) {  // what stands between two returns of the cursor
    const size_t end = std::min(later.find_first_of("\r\n", begin), later.size());
    std::string line = later.substr(begin, end - begin);
    for (size_t code = line.find('\x1b'); code != std::string::npos; code = line.find('\x1b'))
      line.erase(code, line.find_first_of("mKJ", code) - code + 1);
    EXPECT_LE(line.size(), 50u) << line;
    drawn += !line.empty();
    lines += end < later.size() && later[end] == '\n';
    begin = end + 1;
  }
  EXPECT_GE(drawn, 1u);
  EXPECT_LE(lines, 3u) << later;  // of epochs, not of steps
  heed.type("\x03");
  EXPECT_EQ(heed.wait(), 130) << heed.shown();
  EXPECT_NE(heed.shown().find("stopped and saved after step"), std::string::npos) << heed.shown();
  become_saved(folder);
}

TEST(OnTerminal, colours_are_for_terminals_that_want_them) {
  const Folder folder;
  const std::vector<std::string> words{"train",    "classify", "data=shapes:60",      "layers=1", "width=16", "heads=2",
                                       "epochs=1", "--runs",   folder.path().string()};
  OnTerminal plain(words, 80, {"NO_COLOR=1"}), painted(words, 80);
  EXPECT_EQ(plain.wait(), 0) << plain.shown();
  EXPECT_EQ(painted.wait(), 0) << painted.shown();
  EXPECT_NE(painted.shown().find("\x1b[32mbest\x1b[0m"), std::string::npos) << painted.shown();
  EXPECT_EQ(plain.shown().find("\x1b[32m"), std::string::npos) << plain.shown();
  OnTerminal wrong({"nothing"}, 80), wrong_plain({"nothing"}, 80, {"NO_COLOR=1"}), help({"--help"}, 80);
  EXPECT_EQ(wrong.wait(), 2);
  EXPECT_EQ(wrong.shown(), "\x1b[31mheed:\x1b[0m unknown command 'nothing'\r\n");
  wrong_plain.wait();
  EXPECT_EQ(wrong_plain.shown(), "heed: unknown command 'nothing'\r\n");
  EXPECT_EQ(help.wait(), 0);
  EXPECT_NE(help.shown().find("\x1b[1mExamples:\x1b[0m\r\n"), std::string::npos) << help.shown();
}

TEST(OnTerminal, a_closed_window_saves_as_ctrl_c_does) {
  const Folder folder;
  OnTerminal heed(long_run(folder), 80);
  ASSERT_TRUE(heed.shows("epoch    2/1000")) << heed.shown();
  heed.hang_up();
  EXPECT_EQ(heed.wait(), 130);
  become_saved(folder);
}

TEST(Stop, nohup_is_respected_and_sighup_saves) {
  const Folder folder;
  Child heed(long_run(folder), folder / "out");
  while (!heed.ended() && get(folder / "out").find("epoch    1/1000") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  heed.send(SIGHUP);
  EXPECT_EQ(heed.wait(), 130) << get(folder / "out");
  EXPECT_NE(get(folder / "out").find("stopped and saved after step"), std::string::npos) << get(folder / "out");
  become_saved(folder);
  if (kSanitized) return;  // no threads behind a fork there
  const pid_t ignoring = ::fork();
  if (ignoring == 0) {
    ::signal(SIGHUP, SIG_IGN);
    const cli::CatchStop guard;
    ::kill(::getpid(), SIGHUP);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ::_exit(7);
  }
  int status = 0;
  ::waitpid(ignoring, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Stop, the_last_evaluation_ends_at_ctrl_c_and_is_made_again) {
  const Folder folder;
  const Path run = folder / "classify/001";
  Child heed({"train", "classify", "data=shapes:3000", "layers=2", "width=64", "heads=4", "steps=1", "--runs", folder.path().string()},
             folder / "out");
  while (!heed.ended() && get(folder / "out").find("\nepoch ") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  heed.send(SIGINT);
  EXPECT_EQ(heed.wait(), 130) << get(folder / "out");
  EXPECT_NE(get(folder / "out").find("stopped and saved while the best model was evaluated; go on with: heed train --resume "),
            std::string::npos)
      << get(folder / "out");
  EXPECT_FALSE(std::filesystem::exists(run / "evaluation.json"));
  EXPECT_EQ(Child({"train", "--resume", run.string()}, folder / "out").wait(), 0) << get(folder / "out");
  EXPECT_TRUE(std::filesystem::exists(run / "evaluation.json"));
}

// What a process that catches signals ends with, when it gets SIGINT so many times.
int ends_with(int signals, bool save_first, const Path& temporary) {
  const pid_t process = ::fork();
  if (process == 0) {
    ::signal(SIGINT, SIG_DFL);
    ::setenv("TMPDIR", temporary.c_str(), 1);
    const TemporaryFolder folder;
    put(folder.path() / "file", "content");
    cli::CatchStop guard;
    if (save_first) guard.save_first();
    for (int i = 0; i < signals; ++i) {
      ::kill(::getpid(), SIGINT);
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
    }
    for (int i = 0; i < 100 && !guard.asked(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::_exit(guard.asked() ? 7 : 8);  // what somebody computes without looking at the guard
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Stop, the_second_ctrl_c_ends_at_once_and_takes_temporary_folders_with_it) {
  if (kSanitized) GTEST_SKIP() << "no threads behind a fork";
  const Folder folder;
  EXPECT_EQ(ends_with(1, true, folder.path()), 7);
  EXPECT_FALSE(std::filesystem::is_empty(folder.path()));
  std::filesystem::remove_all(folder.path());
  std::filesystem::create_directory(folder.path());
  EXPECT_EQ(ends_with(2, true, folder.path()), 130);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(ends_with(1, false, folder.path()), 130);  // there is nothing to save yet
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace heed::test
