// heed train --resume: from any directory, for more epochs, and after changes of settings and data.
#include <sstream>

#include "heed/io/image.h"
#include "heed/io/json.h"
#include "tests/cli/program.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

// Sets the working directory for a scope.
class WorkIn {
 public:
  explicit WorkIn(const Path& path) : before_(fs::current_path()) { fs::current_path(path); }
  ~WorkIn() { fs::current_path(before_); }
  WorkIn(const WorkIn&) = delete;
  WorkIn& operator=(const WorkIn&) = delete;

 private:
  Path before_;
};

std::string labelled_rows(int count) {
  std::string out = "text,label\n";
  for (int i = 0; i < count; ++i)
    out += (i % 2 ? "a good film with number " : "a bad film with number ") + std::to_string(i) + (i % 2 ? ",good\n" : ",bad\n");
  return out;
}

void replace_in(const Path& file, const std::string& what, const std::string& by) {
  std::string text = get(file);
  const size_t at = text.find(what);
  ASSERT_NE(at, std::string::npos) << what << " in " << text;
  put(file, text.replace(at, what.size(), by));
}

// A run of two epochs over 40 sentences in rows.csv, 36 of them for training.
struct Resume : testing::Test {
  Resume() {
    put(folder / "rows.csv", labelled_rows(40));
    const WorkIn here(folder.path());
    const ProgramResult ran =
        run_heed("train sentiment data=rows.csv vocabulary=60 layers=1 width=16 heads=2 batch=12 epochs=2 log_every=1");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
  }
  ProgramResult resume(const std::string& arguments = "") const { return run_heed("train --resume '" + run.string() + "' " + arguments); }
  void refused(const std::string& arguments, int code, const std::string& message) const {
    const ProgramResult ran = resume(arguments);
    EXPECT_EQ(ran.exit_code, code) << arguments << ran.out << ran.err;
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
  }
  std::string state() const { return read_json(run / "run.json").at("state"); }

  Folder folder;
  Path run = folder / "runs/sentiment/001";
};

TEST_F(Resume, works_from_any_directory) {
  EXPECT_NE(get(run / "config.toml").find("\ndata = \"" + (folder / "rows.csv").string() + "\""), std::string::npos);
  const ProgramResult ran = resume();
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  // A run of an older version: with a relative path, and without run.json.
  replace_in(run / "config.toml", (folder / "rows.csv").string(), "rows.csv");
  fs::remove(run / "run.json");
  refused("", 3,
          "config.toml: data='rows.csv', which is not found from " + fs::current_path().string() +
              ", expected the directory in which the run was started");
  const WorkIn here(folder.path());
  const ProgramResult again = resume();
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(Resume, with_more_epochs_trains_longer) {
  const std::string two = get(run / "metrics.jsonl");
  const ProgramResult ran = resume("--epochs 4");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("\nepochs=4; it was 2\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("\nthe run now has 12 steps instead of 6: schedule=linear now covers all of them. The last step had a rate of "),
            std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("\nepoch 4/4 "), std::string::npos) << ran.out;
  const std::string four = get(run / "metrics.jsonl");
  EXPECT_TRUE(four.starts_with(two));
  EXPECT_NE(four.find("\"kind\":\"epoch\",\"epoch\":4,\"step\":12,"), std::string::npos) << four;
  EXPECT_NE(get(run / "config.toml").find("\nepochs = 4 "), std::string::npos);
  EXPECT_EQ(read_json(run / "run.json").at("settings").at("epochs"), 4);
  EXPECT_NE(get(run / "given.toml").find("\nepochs = 4\n"), std::string::npos) << get(run / "given.toml");
  EXPECT_EQ(get(run / "given.toml").find("beta1"), std::string::npos) << get(run / "given.toml");  // not given
  // Its rates continue as those of a run of four epochs: at step 6 of 12, with a warm-up of one step.
  double rate = 0;
  std::istringstream lines(four);
  for (std::string line; std::getline(lines, line);)
    if (const Json row = parse_json("line", line); row.at("kind") == "step" && row.at("step") == 7) rate = row.at("rate");
  EXPECT_NEAR(rate, 5e-4 * (1 - 5.0 / 11), 1e-9);
  EXPECT_EQ(resume().exit_code, 0);
  EXPECT_EQ(get(run / "metrics.jsonl"), four);
  refused("epochs=3", 2, "train: epochs=3, but the run has finished 4, expected 4 or more");
}

TEST_F(Resume, refuses_settings_that_cannot_change) {
  const std::string before = get(run / "config.toml");
  refused("lr=0.1", 2, "train: rate=0.1 with --resume: the run was started with 5e-04; only epochs, steps, patience");
  refused("width=32", 2, "train: width=32 with --resume: the run was started with 16");
  refused("sentiment", 2, "train: found 'sentiment' with --resume, expected key=value; a run resumes with its original settings");
  refused("data_changed=yes", 2, "train: data_changed='yes', expected accept");
  EXPECT_EQ(get(run / "config.toml"), before);
  EXPECT_EQ(resume("rate=0.0005").exit_code, 0);  // unchanged
}

TEST_F(Resume, edits_of_fixed_settings_are_refused) {
  replace_in(run / "config.toml", "\nrate = ", "\nrate = 0.1 #");
  refused("", 3, "config.toml: was edited since the run was started: rate: 0.0005 then, 0.1 now; a run resumes with its original settings");
}

TEST_F(Resume, edits_of_changeable_settings_are_applied) {
  replace_in(run / "config.toml", "\nepochs = 2", "\nepochs = 3");
  const ProgramResult ran = resume();
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("\nepochs=3 from the edited config.toml; it was 2\n"), std::string::npos) << ran.out;
  EXPECT_NE(get(run / "metrics.csv").find("\n3,9,"), std::string::npos);
}

TEST_F(Resume, changed_data_are_refused_unless_accepted) {
  put(folder / "rows.csv", labelled_rows(50));
  refused("epochs=3", 3, ": the data have changed since the run was started: ");
  refused("epochs=3", 3, "train items: 36 then, 45 now; ");
  const std::string evaluated = run_heed("eval " + run.string() + " --part validation").err;
  EXPECT_NE(evaluated.find("heed: warning: the data changed since the run started: train bytes: "), std::string::npos) << evaluated;
  EXPECT_NE(evaluated.find(" now; other train checksum; train items: 36 then, 45 now; "), std::string::npos) << evaluated;
  EXPECT_NE(evaluated.find(". Samples that are held out now may have been trained on\n"), std::string::npos) << evaluated;
  EXPECT_NE(get(run / "config.toml").find("\nepochs = 2 "), std::string::npos);
  const std::string tokenizer = get(run / "best/tokenizer.json") + get(run / "best/vocab.txt");
  const ProgramResult ran = resume("epochs=3 data_changed=accept");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("the data have changed, accepted by data_changed=accept: "), std::string::npos) << ran.out;
  EXPECT_EQ(get(run / "last/tokenizer.json") + get(run / "last/vocab.txt"), tokenizer);  // the vocabulary stays
  EXPECT_EQ(resume().exit_code, 0);
  // The same number of other sentences; and one more class, which cannot be accepted.
  std::string text = labelled_rows(50);
  text[text.find("bad film")] = 'm';
  put(folder / "rows.csv", text);
  refused("", 3, ": other train checksum; restore them");
  put(folder / "rows.csv", labelled_rows(50) + "none at all,other\nor more,other\n");
  refused("data_changed=accept", 3,
          ": the classes have changed since the run was started: train classes: bad,good then, bad,good,other now");
}

TEST(ResumeImages, detects_changed_names_sizes_and_contents) {
  const Folder folder;
  const auto image = [&](const std::string& name, int shade) {
    fs::create_directories((folder / ("data/" + name)).parent_path());
    Image out{.width = 16, .height = 16, .pixels = std::vector<uint8_t>(16 * 16 * 3, static_cast<uint8_t>(shade))};
    out.pixels[0] = 3;
    write_png(folder / ("data/" + name), out);
  };
  for (int i = 0; i < 12; ++i) image((i % 2 ? "light/" : "dark/") + std::to_string(i) + ".png", i % 2 ? 200 + i : 20 + i);
  const std::string runs = "--runs '" + folder.path().string() + "'";
  const ProgramResult ran =
      run_heed("train classify data='" + (folder / "data").string() + "' layers=1 width=16 heads=2 patch=8 epochs=1 " + runs);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto output = [&] { return output_of_heed("train --resume '" + (folder / "classify/001").string() + "'"); };
  const auto refused = [&](const std::string& fact) {
    const std::string text = output();
    EXPECT_TRUE(text.starts_with("3: ")) << text;
    EXPECT_NE(text.find(fact), std::string::npos) << text;
  };
  fs::rename(folder / "data/dark/0.png", folder / "data/dark/00.png");
  refused("other train names; ");
  fs::rename(folder / "data/dark/00.png", folder / "data/dark/0.png");
  image("dark/0.png", 21);
  refused("other train sample; ");
  image("dark/0.png", 20);
  image("dark/extra.png", 20);
  refused(" items: ");
  fs::remove(folder / "data/dark/extra.png");
  EXPECT_NE(output().find("best epoch: 1"), std::string::npos);
}

TEST_F(Resume, the_state_is_recorded) {
  EXPECT_EQ(state(), "finished");
  EXPECT_EQ(read_json(run / "run.json").at("directory"), folder.path().string());
  put(run / "run.json", "{");
  const ProgramResult ran = resume();
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("cannot check whether settings and data are unchanged"), std::string::npos) << ran.out;
  EXPECT_EQ(state(), "finished");
}

}  // namespace
}  // namespace heed::test
