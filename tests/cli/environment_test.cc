// Invalid environment variables, missing folders, and closed output.
#include <gtest/gtest.h>

#include <thread>

#include "heed/io/json.h"
#include "tests/cli/child.h"
#include "tests/cli/program.h"

namespace heed::test {
namespace {

// The program with environment variables as a shell sets them: "A=1 B=2".
ProgramResult run_with(const std::string& variables, const std::string& arguments) {
  const Folder folder;
  put(folder / "heed", "#!/bin/sh\n" + variables + " exec '" HEED_PROGRAM "' \"$@\"\n");
  const auto quoted = [&](const char* name) { return "'" + (folder / name).string() + "'"; };
  const int status = std::system(("sh " + quoted("heed") + " " + arguments + " >" + quoted("out") + " 2>" + quoted("err")).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, get(folder / "out"), get(folder / "err")};
}

TEST(Environment, invalid_variables_are_reported_without_a_file_name) {
  const std::string model = fixture("gpt2-lm").string();
  for (const std::string& command : {std::string("--version"), "generate '" + model + "' --ids '5 6'", "inspect '" + model + "'"}) {
    for (const char* value : {"abc", "0", "-3", "1e9", "4x", "1025", "99999999999999999999"}) {
      const ProgramResult ran = run_with("HEED_THREADS=" + std::string(value), command);
      EXPECT_EQ(ran.exit_code, 2) << command;
      EXPECT_EQ(ran.err, "heed: HEED_THREADS is '" + std::string(value) + "', expected a number from 1 to 1024\n");
    }
    const ProgramResult ran = run_with("HEED_ISA=foo", command);
    EXPECT_EQ(ran.exit_code, 2) << command;
    EXPECT_EQ(ran.err, "heed: HEED_ISA is 'foo', expected avx512, avx2, baseline or best\n");
  }
  EXPECT_EQ(run_with("HEED_THREADS= HEED_ISA=", "--version").exit_code, 0);
  EXPECT_NE(run_with("HEED_THREADS=3", "--version").out.find("3 threads"), std::string::npos);
}

TEST(Environment, failure_to_create_a_temporary_folder_is_exit_code_1) {
  const Folder folder;
  const std::string train = "train language layers=1 width=16 heads=2 steps=1 --runs '" + (folder / "runs").string() + "'";
  put(folder / "file", "");
  for (const std::string& parent : {(folder / "nowhere").string(), (folder / "file").string(), std::string("/proc")}) {
    const ProgramResult ran = run_with("TMPDIR='" + parent + "'", train);
    EXPECT_EQ(ran.exit_code, 1) << ran.err;
    EXPECT_NE(ran.err.find("heed: " + parent + ": cannot create a temporary folder there ("), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("set TMPDIR"), std::string::npos) << ran.err;
  }
}

// The exit code of the program when its output pipe is closed.
int into_closed_pipe(const std::vector<std::string>& words, const Path& err) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const pid_t process = ::fork();
  if (process == 0) {
    ::signal(SIGPIPE, SIG_DFL);
    std::vector<char*> arguments{const_cast<char*>(HEED_PROGRAM)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Environment, unwritable_output_is_exit_code_1) {
  const Folder folder;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--help"}, {"lab"}, {"attend", "--help"}, {"cost", "bert-base", "--all"}, {"train", "classify", "--settings"}}) {
    EXPECT_EQ(into_closed_pipe(words, folder / "err"), 1) << words[0];
    EXPECT_EQ(get(folder / "err"), "") << words[0];  // as with | head
  }
  if (!std::filesystem::exists("/dev/full")) return;
  const std::string err = (folder / "err").string();
  EXPECT_EQ(WEXITSTATUS(std::system(("'" HEED_PROGRAM "' cost bert-base --all >/dev/full 2>'" + err + "'").c_str())), 1);
  EXPECT_EQ(get(err), "heed: standard output: cannot write\n");
}

TEST(Environment, a_run_with_closed_output_is_saved) {
  const Folder folder;
  const std::vector<std::string> words{"train",      "classify", "data=shapes:100",     "layers=1", "width=16", "heads=2",
                                       "epochs=500", "--runs",   folder.path().string()};
  EXPECT_EQ(into_closed_pipe(words, folder / "err"), 1);
  const std::string error = get(folder / "err");
  EXPECT_TRUE(error.starts_with("heed: standard output: cannot write; stopped and saved after step ")) << error;
  EXPECT_NE(error.find("resume with: heed train --resume "), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::is_empty(folder / "classify/001/checkpoints"));
}

TEST(LabCommand, ctrl_c_keeps_results_and_removes_temporary_folders) {
  const Folder folder;
  std::filesystem::create_directory(folder / "tmp");
  ::setenv("TMPDIR", (folder / "tmp").c_str(), 1);
  // L1 is fast; the other one trains for minutes, in a temporary folder.
  Child heed({"lab", "L1", "training-set-size", "full=true", "-o", (folder / "report").string()}, folder / "out");
  ::unsetenv("TMPDIR");
  while (!heed.ended() && std::filesystem::is_empty(folder / "tmp")) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(std::filesystem::exists(folder / "report/index.html"));
  heed.send(SIGINT);
  EXPECT_EQ(heed.wait(), 130) << get(folder / "out");
  EXPECT_NE(get(folder / "out").find("heed: lab: stopped after 1 of 2 experiments; their results are in "), std::string::npos)
      << get(folder / "out");
  const Json report = read_json(folder / "report/report.json");
  ASSERT_EQ(report["experiments"].size(), 1u);
  EXPECT_EQ(report["experiments"][0]["number"], "L1");
  EXPECT_TRUE(std::filesystem::is_empty(folder / "tmp"));
}

TEST(LabCommand, invalid_output_folders_are_refused_before_running) {
  const ProgramResult ran = run_heed("lab L1 -o /nowhere/report");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_NE(ran.err.find("/nowhere: cannot create the report folder there"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.out, "");
}

TEST(Program, accepts_every_form_of_help_and_version) {
  const std::string help = output_of_heed("--help"), train = output_of_heed("train --help");
  EXPECT_EQ(output_of_heed("help"), help);
  EXPECT_EQ(output_of_heed("-h"), help);
  EXPECT_EQ(output_of_heed("help train"), train);
  EXPECT_EQ(output_of_heed("train -h"), train);
  EXPECT_EQ(output_of_heed("help data look"), output_of_heed("data look --help"));
  const std::string version = output_of_heed("--version");
  EXPECT_EQ(output_of_heed("version"), version);
  EXPECT_EQ(output_of_heed("-V"), version);
  EXPECT_EQ(output_of_heed("help tarin"), "2: heed: unknown command 'tarin'; did you mean 'train'?\n");
  for (const char* command : {"train", "predict", "lab", "data", "cost"})
    EXPECT_EQ(output_of_heed(std::string(command) + " help"),
              "2: heed: " + std::string(command) + ": found 'help'; did you mean 'heed help " + command + "'?\n");
}

TEST(Inspect, accepts_presets_like_cost) {
  const std::string tree = output_of_heed("inspect gpt2");
  EXPECT_TRUE(tree.starts_with("GPT2LMHeadModel: 86610432 parameters")) << tree;
  EXPECT_NE(tree.find("h 0..11 x 12"), std::string::npos) << tree;
  EXPECT_NE(output_of_heed("inspect bert-bse").find("did you mean 'bert-base'?"), std::string::npos);
  EXPECT_EQ(output_of_heed("inspect gpt2 'a sentence'"),
            "2: heed: inspect: gpt2 is a preset without weights, expected the folder of a model\n");
}

}  // namespace
}  // namespace heed::test
