#include "heed/train/run_folder.h"

#include <signal.h>
#include <sys/resource.h>

#include <limits>
#include <thread>

#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

// A run with its config, as a command creates it.
RunFolder make(const Folder& folder, const std::string& name = "") {
  RunFolder run = RunFolder::create(folder.path(), "classify", name);
  put(run.path() / "config.toml", "seed = 1\n");
  return run;
}

std::vector<std::string> names_in(const Path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path().filename());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(RunFolder, takes_the_next_number_or_a_name) {
  const Folder folder;
  EXPECT_EQ(make(folder).path(), folder / "classify/001");
  EXPECT_EQ(make(folder).path(), folder / "classify/002");
  fs::remove_all(folder / "classify/001");
  EXPECT_EQ(make(folder).path(), folder / "classify/003");
  EXPECT_EQ(make(folder, "a run").path(), folder / "classify/a run");
  fs::create_directory(folder / "classify/1234");
  EXPECT_EQ(make(folder).path(), folder / "classify/1235");
  expect_error<UsageError>([&] { make(folder, "a run"); }, "found the name \"a run\" taken in");
  fs::create_directory(folder / "classify/empty");  // as left by a run that ended before writing its settings
  put(folder / "classify/empty/given.toml", "");
  EXPECT_EQ(make(folder, "empty").path(), folder / "classify/empty");
  expect_error<UsageError>([&] { make(folder, "empty"); }, "found the name \"empty\" taken in");
  for (const char* name : {"a/b", "..", ".", ".hidden", "a\nb"})
    expect_error<UsageError>([&] { make(folder, name); }, "expected one without slashes");
  expect_error<UsageError>([&] { RunFolder::create(folder.path(), "", "a"); }, "task: found the name \"\"");
  put(folder / "file", "");
  expect_error<FileError>([&] { RunFolder::create(folder / "file", "classify", "a"); }, "cannot create the folder");
}

TEST(RunFolder, concurrent_runs_get_different_folders) {
  const Folder folder;
  std::array<std::vector<Path>, 4> created;
  std::vector<std::thread> threads;
  for (auto& mine : created)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) mine.push_back(RunFolder::create(folder.path(), "classify", "").path());
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<Path> all;
  for (const auto& mine : created) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(names_in(folder / "classify").size(), 100u);
}

TEST(RunFolder, opens_only_runs) {
  const Folder folder;
  const Path path = make(folder).path();
  EXPECT_EQ(RunFolder::open(path).path(), path);
  EXPECT_EQ(names_in(path), std::vector<std::string>{"config.toml"});  // opening creates no files
  expect_error<FileError>([&] { RunFolder::open(folder / "none"); }, "none: found no such folder");
  expect_error<FileError>([&] { RunFolder::open(folder.path()); }, ": found no config.toml, expected a run folder");
}

TEST(RunFolder, writes_figures_as_documented) {
  const Folder folder;
  RunFolder run = make(folder);
  run.add_step(1, 20, {{"train_loss", 0.1}, {"rate", 1e-5}});
  run.add_epoch(1, 25, {{"train_loss", 1.0 / 3}, {"accuracy", 0.5}});
  run.add_epoch(2, 50, {{"accuracy", -kNan}, {"later", 7}});
  run.add_epoch(3, 75, {{"train_loss", -kInfinity}, {"accuracy", 1e300}});
  run.add_speed(3, 75, {{"samples_per_second", 1234.5}});
  EXPECT_EQ(get(run.path() / "metrics.jsonl"),
            "{\"kind\":\"step\",\"epoch\":1,\"step\":20,\"train_loss\":0.1,\"rate\":1e-05}\n"
            "{\"kind\":\"epoch\",\"epoch\":1,\"step\":25,\"train_loss\":0.3333333333333333,\"accuracy\":0.5}\n"
            "{\"kind\":\"epoch\",\"epoch\":2,\"step\":50,\"accuracy\":null,\"later\":7}\n"
            "{\"kind\":\"epoch\",\"epoch\":3,\"step\":75,\"train_loss\":null,\"accuracy\":1e+300}\n");
  EXPECT_EQ(get(run.path() / "metrics.csv"), "epoch,step,train_loss,accuracy\n1,25,0.3333333333333333,0.5\n2,50,,nan\n3,75,-inf,1e+300\n");
  EXPECT_EQ(get(run.path() / "speed.csv"), "epoch,step,samples_per_second\n3,75,1234.5\n");
  std::istringstream lines(get(run.path() / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(parse_json("line", line).is_object());
  expect_error([&] { run.add_step(1, 1, {{"a,b", 1}}); }, "found the figure \"a,b\"");
  run.log("hello");
  const std::string log = get(run.path() / "log.txt");
  EXPECT_EQ(log.size(), std::string("2000-01-01 00:00:00 hello\n").size());
  EXPECT_TRUE(log.ends_with(" hello\n"));
}

// Everything that a run writes in these steps, two per epoch.
void write_steps(RunFolder& run, int64_t from, int64_t to) {
  for (int64_t step = from; step <= to; ++step) {
    run.add_step((step + 1) / 2, step, {{"loss", 1.0 / static_cast<double>(step)}});
    if (step % 2 == 0) run.add_epoch(step / 2, step, {{"loss", 2.0 / static_cast<double>(step)}, {"best", kNan}});
    run.add_speed((step + 1) / 2, step, {{"speed", static_cast<double>(step)}});
  }
}

TEST(RunFolder, a_killed_run_leaves_the_same_files) {
  const Folder folder;
  RunFolder whole = make(folder);
  write_steps(whole, 1, 9);
  const auto size_of_events = [](RunFolder& run) { return run.events().size(); };
  for (int64_t marked = 0; marked <= 6; ++marked) {
    Json mark;
    Path path;
    {
      RunFolder killed = make(folder);
      path = killed.path();
      write_steps(killed, 1, marked);
      if (marked > 0) mark = parse_json("mark", killed.mark().dump());
      write_steps(killed, marked + 1, 7);
      killed.log("killed");
    }
    for (const char* file : {"metrics.jsonl", "metrics.csv", "speed.csv", "log.txt"})
      std::ofstream(path / file, std::ios::app) << "half a li";
    RunFolder again = RunFolder::open(path);
    again.rewind(mark, marked);
    write_steps(again, marked + 1, 9);
    for (const char* file : {"metrics.jsonl", "metrics.csv", "speed.csv"})
      EXPECT_EQ(get(path / file), get(whole.path() / file)) << file << " from " << marked;
    EXPECT_EQ(size_of_events(again), size_of_events(whole)) << marked;
    const std::string log = get(path / "log.txt");
    EXPECT_NE(log.find(" killed\n"), log.npos) << log;
    EXPECT_TRUE(log.ends_with(" continued from step " + std::to_string(marked) + "\n")) << log;
    EXPECT_EQ(log.find("half"), log.npos) << log;
  }
}

TEST(RunFolder, resumes_with_truncated_files) {
  const Folder folder;
  Json mark;
  Path path;
  {
    RunFolder run = make(folder);
    path = run.path();
    write_steps(run, 1, 4);
    mark = run.mark();
  }
  put(path / "metrics.csv", "epoch,step,loss,best\n1,2");
  fs::remove(path / "speed.csv");
  RunFolder run = RunFolder::open(path);
  run.rewind(mark);
  write_steps(run, 5, 6);
  EXPECT_EQ(get(path / "metrics.csv"), "epoch,step,loss,best\n3,6,0.3333333333333333,nan\n");
  EXPECT_EQ(get(path / "speed.csv"), "epoch,step,speed\n3,5,5\n3,6,6\n");
  EXPECT_NE(get(path / "log.txt").find("speed.csv has 0 bytes, "), std::string::npos);
}

TEST(RunFolder, is_locked_by_its_writer) {
  const Folder folder;
  RunFolder first = make(folder);
  first.log("mine");
  RunFolder second = RunFolder::open(first.path());
  expect_error<FileError>([&] { second.log("mine too"); }, "another process is writing to this run");
  first = make(folder);
  second.log("now");
}

TEST(RunFolder, reports_a_full_disk) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  for (const char* file : {"log.txt", "metrics.jsonl", "metrics.csv", "speed.csv"}) {
    const Folder folder;
    RunFolder run = make(folder);
    fs::create_symlink("/dev/full", run.path() / file);
    expect_error<WriteError>(
        [&] {
          run.log("hello");
          run.add_epoch(1, 1, {{"loss", 1}});
          run.add_speed(1, 1, {{"speed", 1}});
        },
        std::string(file) + ": cannot be appended to (No space left on device)");
  }
}

TEST(RunFolder, a_line_that_does_not_fit_is_not_started) {
  const Folder folder;
  RunFolder run = make(folder);
  write_steps(run, 1, 4);
  const std::string before = get(run.path() / "metrics.jsonl");
  // A limit on the file size makes writes fail as a full disk does.
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{before.size() + 10, old.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  expect_refused([&] { run.add_step(3, 5, {{"loss", 0.2}}); }, "metrics.jsonl: cannot be appended to (File too large)");
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(get(run.path() / "metrics.jsonl"), before);
  write_steps(run, 5, 6);
  EXPECT_TRUE(get(run.path() / "metrics.jsonl").starts_with(before + "{\"kind\":\"step\",\"epoch\":3,\"step\":5,"));
}

TEST(ReplaceFolder, puts_the_new_one_in_place_in_one_step) {
  const Folder folder;
  const auto fill = [](const std::string& text) {
    return [text](const Path& temporary) {
      put(temporary / "a", text);
      fs::create_directory(temporary / "inner");
      put(temporary / "inner/b", text);
    };
  };
  replace_folder(folder / "best", fill("one"));
  EXPECT_EQ(get(folder / "best/inner/b"), "one");
  put(folder / "best/extra", "");
  replace_folder(folder / "best/", [&](const Path& temporary) {
    EXPECT_EQ(get(folder / "best/a"), "one");  // until the new one is complete
    fill("two")(temporary);
  });
  EXPECT_EQ(get(folder / "best/a"), "two");
  EXPECT_EQ(names_in(folder / "best"), (std::vector<std::string>{"a", "inner"}));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"best"});
}

TEST(ReplaceFolder, keeps_the_old_one_when_writing_fails) {
  const Folder folder;
  replace_folder(folder / "best", [](const Path& temporary) { put(temporary / "a", "one"); });
  expect_error<FileError>(
      [&] {
        replace_folder(folder / "best", [](const Path& temporary) {
          put(temporary / "a", "two");
          fail<FileError>("the disk is full");
        });
      },
      "the disk is full");
  EXPECT_EQ(get(folder / "best/a"), "one");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"best"});
  put(folder / "file", "");
  expect_error<FileError>([&] { replace_folder(folder / "file", [](const Path&) {}); }, "file: found a file, expected a folder or nothing");
  expect_error<FileError>([&] { replace_folder(folder / "none/best", [](const Path&) {}); }, "cannot create a temporary folder next to it");
}

TEST(ReplaceFolder, cleans_up_after_killed_calls) {
  const Folder folder;
  fs::create_directories(folder / ".best.heed-new/inner");
  put(folder / ".best.heed-new/half", "");
  fs::create_directory(folder / ".best.heed-old");  // killed when the old one was moved away and the new one not yet in place
  put(folder / ".best.heed-old/a", "one");
  expect_error([&] { replace_folder(folder / "best", [](const Path&) { fail("stop"); }); }, "stop");
  EXPECT_EQ(get(folder / "best/a"), "one");
  replace_folder(folder / "best", [](const Path& temporary) { put(temporary / "a", "two"); });
  EXPECT_EQ(get(folder / "best/a"), "two");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"best"});
}

}  // namespace
}  // namespace heed::test
