// heed train from the command line.
#include <csignal>
#include <sstream>
#include <thread>

#include "heed/io/json.h"
#include "tests/cli/child.h"
#include "tests/cli/program.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSmall = "data=shapes:200 layers=1 width=32 heads=2 patch=8 batch=50 epochs=2 ";

std::string runs_in(const Folder& folder) { return " --runs '" + folder.path().string() + "' "; }

TEST(Train, writes_every_documented_file) {
  const Folder folder;
  const ProgramResult ran = run_heed("train classify " + (kSmall + runs_in(folder)));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_NE(ran.out.find("\nepoch 2/2  loss "), std::string::npos) << ran.out;
  const Path run = folder / "classify/001";
  for (const char* name :
       {"config.toml", "log.txt", "metrics.csv", "metrics.jsonl", "speed.csv", "last/model.safetensors", "best/config.json",
        "best/preprocessor_config.json", "report.html", "evaluation.json", "samples.json", "costs.json"})
    EXPECT_GT(fs::file_size(run / name), 0u) << name;
  EXPECT_FALSE(fs::is_empty(run / "checkpoints"));
  int events = 0;
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename();
    events += name.starts_with("events.out.tfevents.");
    EXPECT_NE(name[0], '.') << name;
  }
  EXPECT_EQ(events, 1);
  const Json evaluation = read_json(run / "evaluation.json");
  EXPECT_EQ(evaluation.at("part"), "test");
  EXPECT_TRUE(evaluation.at("figures").contains("accuracy"));

  // Resuming a finished run evaluates it again, and nothing else changes.
  const std::string metrics = get(run / "metrics.csv"), weights = get(run / "last/model.safetensors");
  const ProgramResult again = run_heed("train --resume '" + run.string() + "'");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("resumes from step 8 of 8: the run is finished; with epochs=N it is trained further\n"), std::string::npos)
      << again.out;
  EXPECT_EQ(get(run / "metrics.csv"), metrics);
  EXPECT_EQ(get(run / "last/model.safetensors"), weights);
  EXPECT_EQ(read_json(run / "evaluation.json"), evaluation);

  // Another run starts from its model; only its regularization may be changed.
  const std::string from = "train classify data=shapes:100 epochs=1 from='" + (run / "best").string() + "'" + runs_in(folder);
  const ProgramResult other = run_heed(from + "stochastic_depth=0.2 dropout=0.1");
  EXPECT_EQ(other.exit_code, 0) << other.err;
  const Json config = read_json(folder / "classify/002/last/config.json");
  EXPECT_EQ(config["heed"].dump(), R"({"stochastic_depth":0.2})");
  EXPECT_EQ(config["hidden_dropout_prob"].dump(), "0.1");
  const ProgramResult wider = run_heed(from + "width=64");
  EXPECT_EQ(wider.exit_code, 2);
  EXPECT_NE(wider.err.find("train: width=64 with from="), std::string::npos) << wider.err;
}

TEST(Train, says_when_the_last_epoch_is_the_best) {
  const Folder folder;
  const std::string hint = "\nThe last epoch is the best, so more may help: heed train --resume " + (folder / "classify/001").string();
  const ProgramResult last = run_heed("train classify best=loss " + (kSmall + runs_in(folder)));
  EXPECT_NE(last.out.find("\nbest epoch: 2; "), std::string::npos) << last.out;
  EXPECT_NE(last.out.find(hint + " epochs=4\n"), std::string::npos) << last.out;
  const ProgramResult only = run_heed("train classify " + (kSmall + ("epochs=1" + runs_in(folder))));
  EXPECT_NE(only.out.find("\nbest epoch: 1; "), std::string::npos) << only.out;
  EXPECT_EQ(only.out.find("The last epoch"), std::string::npos) << only.out;
}

TEST(Train, refuses_invalid_arguments) {
  const Folder folder;
  const auto expect = [&](const std::string& arguments, int exit_code, const std::string& fragment) {
    const ProgramResult ran = run_heed("train " + arguments + runs_in(folder));
    EXPECT_EQ(ran.exit_code, exit_code) << arguments;
    EXPECT_NE(ran.err.find(fragment), std::string::npos) << ran.err;
  };
  expect("", 2, "train: no task given; heed train --settings lists the tasks");
  expect("clasify", 2, "classify");
  expect("classify epohcs=2", 2, "unknown setting 'epohcs'; did you mean 'epochs'? heed train classify --settings lists all settings\n");
  expect("caption beams_of_light=2", 2, "unknown setting 'beams_of_light'; heed train caption --settings lists all settings\n");
  for (const char* task : {"classify", "sentiment", "caption", "translate", "language"})
    expect(std::string(task) + " data=", 2, "train: data is empty, expected a file, a folder or the name of synthetic data");
  expect("classify epochs=none", 2, "epochs");
  expect("classify images", 2, "train: found 'images', expected key=value or a .toml file");
  fs::create_directories(folder / "photos/cats");
  const std::string photos = folder / "photos";
  expect("classify " + photos, 2, "expected key=value or a .toml file; did you mean data=" + photos + "?");
  expect("sentiment data=" + photos, 3, "photos: found a folder without train.tsv, train.csv or train.jsonl");
  write_png(folder / "photos/cats/1.png", {.width = 4, .height = 4, .pixels = std::vector<uint8_t>(48)});
  expect("classify data=" + photos, 3, "photos: found 1 class, \"cats\", expected at least two: a folder of images for each");
  put(folder / "one.txt", "One sentence.\n");
  expect("pretrain data=" + (folder / "one.txt").string(), 3, "train: found no words to train on, expected more text");
  expect("classify nowhere.toml", 3, "nowhere.toml");
  expect("classify data=/nowhere", 3, "/nowhere");
  expect("classify " + std::string(kSmall) + "best=bleu", 2, "found the metric 'bleu'");
  expect("--resume /nowhere", 3, "/nowhere");
  expect("classify --resume /nowhere", 2, "a run resumes with its original settings");
  put(folder / "bad", "");
  expect("classify data=" + (folder / "bad").string(), 3, "bad");
}

TEST(Train, settings_have_aliases_and_can_be_written_as_flags) {
  const auto value = [](const std::string& arguments, const std::string& expected) {
    const std::string output = output_of_heed("train classify --settings " + arguments);
    EXPECT_NE(output.find("\n  " + expected + " "), std::string::npos) << arguments << "\n" << output;
  };
  for (const char* arguments : {"lr=0.5", "learning_rate=0.5", "--lr 0.5", "--lr=0.5", "--learning-rate 0.5", "--rate 0.5"})
    value(arguments, "rate=0.5");
  for (const char* arguments : {"batch_size=7", "--batch-size 7", "--batch_size=7", "--batch 7"}) value(arguments, "batch=7");
  for (const char* arguments : {"num_epochs=3", "--epochs 3", "--epochs=3", "--num-epochs 3 --json"}) value(arguments, "epochs=3");
  for (const char* arguments : {"--flip", "--flip true", "--flip=true", "--flip --seed 2"}) value(arguments, "flip=true");
  for (const char* arguments : {"device=cpu", "--device cpu"}) value(arguments, "device=cpu");
  value("--flip false --model.initializer_range 0.5 --seed 4", "seed=4");
  const auto refused = [](const std::string& arguments, const std::string& message) {
    const ProgramResult ran = run_heed("train classify " + arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
  };
  refused("--epochs", "train: found --epochs without a value, expected --epochs VALUE or epochs=VALUE");
  refused("--epocs 3", "unknown flag '--epocs'; did you mean '--epochs'?");
  refused("--beams 3", "train: unknown setting 'beams'");
  refused("lr=nan", "train: lr means rate: rate='nan', expected a number");
  refused("--lr inf", "train: lr means rate: rate='inf', expected a number");
  refused("rate=-inf", "train: rate='-inf', expected a number");
  refused("device=cuda:77", "device cuda:77: this machine has");
  refused("device=gpu", "device 'gpu' is not known, expected auto, cpu, cuda or cuda:NUMBER");
  refused("model=vit-tiny", "preset=NAME selects a model, from=FOLDER a trained one");
}

TEST(Train, presets_of_other_tasks_are_refused_before_a_run_is_created) {
  const Folder folder;
  const auto refused = [&](const std::string& arguments, const std::string& message) {
    const ProgramResult ran = run_heed("train " + arguments + runs_in(folder));
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_EQ(ran.err, "heed: train: " + message + "\n");
  };
  const std::string images = "vit-tiny, vit-small, vit-base, vit-tiny-experts, gaussian, gaussian-small, resnet18",
                    encoders = "bert-mini, bert-small, bert-base";
  refused("classify preset=gpt2", "preset=gpt2 is not supported by classify, expected one of " + images);
  refused("sentiment preset=vit-tiny",
          "preset=vit-tiny is not supported by sentiment, expected one of " + encoders + ", lstm-small, gru-small");
  refused("pretrain preset=transformer-small", "preset=transformer-small is not supported by pretrain, expected one of " + encoders);
  refused("translate preset=bert-mini",
          "preset=bert-mini is not supported by translate, expected one of transformer-small, lstm-additive, lstm-dot, transformer-base");
  refused("language preset=bert-mini", "preset=bert-mini is not supported by language, expected one of gpt-mini, gpt2, llama-mini");
  EXPECT_TRUE(folder.names().empty());
}

TEST(Train, the_number_of_heads_follows_the_width) {
  const Folder folder;
  const ProgramResult ran = run_heed("train classify data=shapes:60 layers=1 width=32 patch=8 epochs=1" + runs_in(folder));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("\nheads=2, as the heads of vit-tiny do not divide width=32\n"), std::string::npos) << ran.out;
  EXPECT_NE(get(folder / "classify/001/config.toml").find("\nheads = 2 "), std::string::npos);
  const ProgramResult listed = run_heed("train classify width=32 --settings");
  EXPECT_NE(listed.out.find("\n  heads=2 "), std::string::npos) << listed.out;
}

TEST(Train, prints_json_or_nothing) {
  const Folder folder;
  const ProgramResult ran = run_heed("train classify --json " + (kSmall + runs_in(folder)));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  std::map<std::string, int> events;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) {
    const Json json = parse_json("a line", line);
    ++events[json.at("event").get<std::string>()];
    EXPECT_EQ(json.at("event") != "note", json.contains("figures")) << line;
  }
  EXPECT_EQ(events["epoch"], 2);
  EXPECT_EQ(events["end"], 1);
  EXPECT_GE(events["note"], 2);

  const ProgramResult quiet = run_heed("train classify --quiet " + (kSmall + runs_in(folder)));
  EXPECT_EQ(quiet.exit_code, 0);
  EXPECT_EQ(quiet.out + quiet.err, "");
  EXPECT_EQ(get(folder / "classify/001/metrics.jsonl"), get(folder / "classify/002/metrics.jsonl"));
}

TEST(Train, ctrl_c_saves_and_resume_finishes) {
  const Folder folder;
  const std::vector<std::string> arguments{
      "train",     "classify", "data=shapes:64",      "layers=1", "width=16", "heads=2", "patch=8", "batch=16",
      "epochs=16", "--runs",   folder.path().string()};
  const Path run = folder / "classify/001";
  int code = 0;
  for (int attempt = 0; attempt < 20 && code == 0; ++attempt) {  // on a busy machine it may finish before the signal
    fs::remove_all(run);
    Child child(arguments, folder / "out");
    while (!child.ended() && get(run / "metrics.csv").find("\n2,") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    child.send(SIGINT);
    code = child.wait();
  }
  EXPECT_EQ(code, 130);
  EXPECT_NE(get(folder / "out").find("resume with: heed train --resume " + run.string()), std::string::npos) << get(folder / "out");
  EXPECT_FALSE(fs::exists(run / "report.html"));
  ASSERT_EQ(run_heed("train --quiet --resume '" + run.string() + "'").exit_code, 0);
  EXPECT_TRUE(fs::exists(run / "report.html"));

  std::vector<std::string> whole = arguments;
  whole.insert(whole.end(), {"--name", "whole"});
  ASSERT_EQ(Child(whole, folder / "out").wait(), 0);
  for (const char* name : {"metrics.csv", "metrics.jsonl", "last/model.safetensors", "best/model.safetensors"})
    EXPECT_TRUE(get(run / name) == get(folder / "classify/whole" / name)) << name;
}

TEST(Train, a_run_without_a_finite_model_is_exit_code_4) {
  const Folder folder;
  // The only step is too large, and no later step could detect it.
  const ProgramResult ran = run_heed("train classify data=shapes:50 layers=1 width=16 heads=2 epochs=1 rate=1e30" + runs_in(folder));
  EXPECT_EQ(ran.exit_code, 4) << ran.err;
  EXPECT_NE(ran.err.find("classify: the best model has the test loss "), std::string::npos) << ran.err;
  EXPECT_EQ(read_json(folder / "classify/001/run.json").at("state"), "diverged");
}

TEST(Train, names_can_be_invalid_utf8) {
  const Folder folder;
  const ProgramResult ran =
      run_heed("train classify data=shapes:50 layers=1 width=16 heads=2 steps=1 --json --name \"$(printf 'b\\351')\"" + runs_in(folder));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(Json::accept(line)) << line;
  EXPECT_NE(output_of_heed("runs '" + folder.path().string() + "'").find("b\\xe9  "), std::string::npos);
}

TEST(Train, prints_a_resume_command_that_a_shell_runs) {
  const Folder folder;
  Child heed(
      {"train", "classify", "data=shapes:400", "layers=1", "width=16", "heads=2", "epochs=9999", "--runs", (folder / "my runs").string()},
      folder / "out");
  while (!heed.ended() && get(folder / "out").find("\nepoch ") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  heed.send(SIGINT);
  EXPECT_EQ(heed.wait(), 130) << get(folder / "out");
  EXPECT_NE(get(folder / "out").find("resume with: heed train --resume '" + (folder / "my runs").string() + "/classify/001'"),
            std::string::npos)
      << get(folder / "out");
}

}  // namespace
}  // namespace heed::test
