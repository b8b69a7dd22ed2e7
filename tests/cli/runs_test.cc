// heed runs, heed report and heed eval on runs that ended in every way.
#include <sstream>
#include <thread>

#include "heed/io/json.h"
#include "tests/cli/child.h"
#include "tests/cli/program.h"
#include "tests/cli/terminal.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShapes80 = " data=shapes:80 layers=1 width=16 heads=2 patch=8 batch=20 ";

// Two finished runs.
struct Runs : testing::Test {
  static void SetUpTestSuite() {
    folder = std::make_unique<Folder>();
    ASSERT_EQ(output_of_heed("train classify epochs=2 --quiet" + (kShapes80 + runs())), "");
    ASSERT_EQ(output_of_heed("train classify epochs=1 rate=0.01 --quiet" + (kShapes80 + runs())), "");
  }
  static void TearDownTestSuite() { folder.reset(); }

  static std::string runs() { return " --runs '" + folder->path().string() + "' "; }
  static std::string run(const std::string& name) { return (*folder / ("classify/" + name)).string(); }
  static Json listed(const std::string& arguments) {
    const ProgramResult ran = run_heed("runs --json " + arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return parse_json("out", ran.out);
  }
  static inline std::unique_ptr<Folder> folder;
};

TEST_F(Runs, fit_a_terminal) {
  OnTerminal heed({"runs", folder->path().string()}, 80, {"NO_COLOR=1"});
  EXPECT_EQ(heed.wait(), 0) << heed.output();
  std::istringstream lines(heed.output());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const char* text : {"best on validation", ".../classify/001  ", "finished\r\n"})
    EXPECT_NE(heed.output().find(text), std::string::npos) << heed.output();
}

TEST_F(Runs, are_listed_with_their_states) {
  // One is stopped by SIGINT, one is killed, one is running.
  const auto start_arguments = [&](const std::string& name) {
    return std::vector<std::string>{
        "train",       "classify", "data=shapes:80",        "layers=1", "width=16", "heads=2", "patch=8", "batch=20",
        "epochs=9999", "--runs",   folder->path().string(), "--name",   name};
  };
  const auto wait_for_epoch = [&](Child& child, const std::string& name) {
    while (!child.ended() && get(run(name) + "/metrics.csv").find("\n1,") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  for (const char* name : {"killed", "stopped"}) {
    Child child(start_arguments(name), *folder / "out");
    wait_for_epoch(child, name);
    child.send(name == std::string("stopped") ? SIGINT : SIGKILL);
    child.wait();
  }
  Child child(start_arguments("working"), *folder / "out");
  wait_for_epoch(child, "working");
  for (const std::string& arguments : {folder->path().string(), folder->path().string() + "/classify"}) {
    const Json list = listed(arguments).at("runs");
    std::map<std::string, std::string> states;
    for (const Json& each : list) states[each.at("name")] = each.at("state");
    EXPECT_EQ(states,
              (std::map<std::string, std::string>{
                  {"001", "finished"}, {"002", "finished"}, {"killed", "interrupted"}, {"stopped", "stopped"}, {"working", "running"}}));
  }
  child.send(SIGKILL);
  child.wait();
  for (const char* name : {"killed", "stopped", "working"}) fs::remove_all(run(name));
  fs::remove(*folder / "out");

  const Json first = listed(run("001")).at("runs")[0];
  EXPECT_EQ(first.at("run"), run("001"));
  EXPECT_EQ(first.at("task"), "classify");
  EXPECT_EQ(first.at("data"), "shapes:80");
  EXPECT_EQ(first.at("model"), "vit-tiny");
  EXPECT_EQ(first.at("epochs"), 2);
  EXPECT_EQ(first.at("planned"), 2);
  EXPECT_EQ(first.at("metric"), "accuracy");
  EXPECT_GT(first.at("seconds").get<double>(), 0);
  EXPECT_EQ(first.at("figures"), read_json(run("001") + "/evaluation.json").at("figures"));
  EXPECT_EQ(first.at("damaged"), Json::array());
  const std::string table = output_of_heed("runs " + folder->path().string());
  EXPECT_NE(table.find("  2/2     accuracy "), std::string::npos) << table;
  EXPECT_NE(table.find("  finished\n"), std::string::npos) << table;
}

TEST_F(Runs, are_compared) {
  const std::string both = run("001") + " " + run("002");
  const Json compared = listed(both);
  EXPECT_EQ(compared.at("settings"), (Json{{"rate", {"0.001", "0.01"}}, {"epochs", {"2", "1"}}}));
  EXPECT_EQ(compared.at("figures").at("test loss")[1], read_json(run("002") + "/evaluation.json").at("figures").at("loss"));
  EXPECT_EQ(compared, listed("--compare " + folder->path().string()));
  const std::string text = output_of_heed("runs " + both);
  EXPECT_NE(text.find("\nsettings that differ\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  rate "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  epochs "), std::string::npos) << text;
  EXPECT_EQ(text.find("width"), std::string::npos) << text;
}

TEST_F(Runs, missing_runs_are_reported) {
  const Folder empty;
  const auto refused = [](const std::string& arguments, const std::string& message) {
    const ProgramResult ran = run_heed(arguments);
    EXPECT_EQ(ran.exit_code, 3) << arguments;
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
  };
  refused("runs /nowhere", "/nowhere: there is no such folder, expected one with runs");
  refused("runs '" + empty.path().string() + "'", ": found no runs");
}

TEST_F(Runs, share_a_report_for_their_folder) {
  const std::string classes = folder->path().string() + "/classify";
  EXPECT_EQ(output_of_heed("report " + classes), classes + "/report.html\n");
  const std::string page = get(classes + "/report.html");
  EXPECT_NE(page.find("2 runs side by side"), std::string::npos);
  EXPECT_EQ(page.find("Damaged files"), std::string::npos);
  fs::remove(classes + "/report.html");
}

TEST_F(Runs, with_damaged_files_are_still_shown) {
  fs::copy(run("001"), run("damaged"), fs::copy_options::recursive);
  const Path damaged = run("damaged");
  const std::string weights = get(damaged / "best/model.safetensors"), metrics = get(damaged / "metrics.jsonl");
  put(damaged / "evaluation.json", "{\"part\":");
  put(damaged / "samples.json", "7");
  put(damaged / "metrics.jsonl", "{]\n" + metrics + "nothing\n");
  put(damaged / "best/model.safetensors", weights.substr(0, weights.size() / 2));
  const ProgramResult ran = run_heed("report " + damaged.string());
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, (damaged / "report.html").string() + "\n");
  const std::string page = get(damaged / "report.html");
  for (const char* file : {"evaluation.json", "samples.json", "metrics.jsonl: line 1", "best/model.safetensors"}) {
    EXPECT_NE(ran.err.find("heed: damaged: " + (damaged / file).string()), std::string::npos) << file << ran.err;
    EXPECT_NE(page.find(file), std::string::npos) << file;
  }
  EXPECT_EQ(ran.err.find("costs.json"), std::string::npos) << ran.err;
  EXPECT_NE(page.find("Damaged files"), std::string::npos);
  EXPECT_NE(page.find("<svg"), std::string::npos);  // the curves of the remaining data
  const Json listed_one = listed(damaged.string()).at("runs")[0];
  EXPECT_EQ(listed_one.at("damaged").size(), 4u) << listed_one;
  EXPECT_EQ(listed_one.at("epochs"), 2);
  fs::remove_all(damaged);
}

TEST_F(Runs, are_evaluated_on_their_own_data) {
  const auto evaluated = [](const std::string& arguments) {
    const ProgramResult ran = run_heed("eval --json " + arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return parse_json("out", ran.out);
  };
  const auto expect_near = [](const Json& found, const Json& expected, const std::string& prefix) {
    EXPECT_GE(found.size(), 4u);
    for (const auto& [name, value] : found.items())
      EXPECT_NEAR(value.get<double>(), expected.at(prefix + name).get<double>(), 1e-4) << name;
  };
  const Json evaluation = read_json(run("001") + "/evaluation.json").at("figures");
  expect_near(evaluated(run("001")).at("figures"), evaluation, "");
  expect_near(evaluated(run("001") + "/best --part test").at("figures"), evaluation, "");
  EXPECT_EQ(evaluated(run("001")).at("data"), "shapes:80");

  // The held-out part: the same metrics as in the best epoch.
  put(*folder / "rows.csv", [] {
    std::string out = "text,label\n";
    for (int i = 0; i < 60; ++i) out += "sentence number " + std::to_string(i * i) + (i % 3 ? ",a\n" : ",b\n");
    return out;
  }());
  const std::string arguments = "train sentiment data='" + (*folder / "rows.csv").string() +
                                "' validation=0.25 seed=3 vocabulary=60 layers=1 width=16 heads=2 epochs=2";
  ASSERT_EQ(output_of_heed(arguments + " --quiet" + runs()), "");
  const std::string run = (*folder / "sentiment/001").string();
  Json best;
  std::istringstream lines(get(run + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (const Json row = parse_json("line", line); row.at("kind") == "epoch")
      if (best.is_null() || row.at("validation_accuracy") > best.at("validation_accuracy")) best = row;
  const Json held_out = evaluated(run + " --part validation");
  expect_near(held_out.at("figures"), best, "validation_");
  EXPECT_EQ(held_out.at("what"), "15 items, validation part of " + run);
  const ProgramResult none = run_heed("eval " + run + " --part test");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("has no test part, expected --part validation"), std::string::npos) << none.err;
  const ProgramResult model = run_heed("eval '" + fixture("vit-classify").string() + "'");
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_NE(model.err.find("eval: found no DATA"), std::string::npos) << model.err;
  fs::remove_all(*folder / "sentiment");
}

}  // namespace
}  // namespace heed::test
