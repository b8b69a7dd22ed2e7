// Runs record their Gaussian heads, and interrupted runs leave the same bytes.
#include "heed/train/head_record.h"

#include <cmath>

#include "heed/lab/heads.h"
#include "heed/train/training_job.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

GaussianHead round_head(float alpha, double down = 0, double along = 0) { return gaussian_head({alpha}, {down, along}); }

HeadFrame frame_of(const std::vector<GaussianHead>& heads, int64_t epoch = 0) {
  return {.epoch = epoch, .step = 10 * epoch, .heads = {.grid = {8, 8}, .layers = {{"layer.0", heads}}}};
}

const std::vector<std::string> kThreeHeads{
    "data=shapes:64", "preset=gaussian-small", "layers=2",    "width=12", "heads=3", "patch=8", "batch=16", "epochs=3", "pad=0",
    "rate=0.5",       "log_every=1",           "save_every=1"};

struct HeadsRun {
  explicit HeadsRun(const Folder& folder, const std::string& name, const std::vector<std::string>& more = {})
      : training("classify"), path(folder / ("classify/" + name)) {
    std::vector<std::string> arguments = kThreeHeads;
    arguments.insert(arguments.end(), more.begin(), more.end());
    training.apply(arguments);
  }
  // Runs until this many steps are done, as a separate process would; 0: to the end.
  void go(int64_t steps = 0) {
    const Task task = training.make();
    RunFolder run = std::filesystem::exists(path) ? RunFolder::open(path)
                                                  : RunFolder::create(path.parent_path().parent_path(), "classify", path.filename());
    if (!std::filesystem::exists(path / "config.toml")) write_settings(run, training.settings());
    int64_t done = 0;
    train_model(task, training.train_options(), run,
                {.step = [&](const StepInfo& step) { done = step.all_step; }, .stop = [&] { return steps > 0 && done >= steps; }});
  }
  TrainingJob training;
  Path path;
};

void expect_same_head(const GaussianHead& a, const GaussianHead& b) {
  EXPECT_EQ(a.center, b.center);
  EXPECT_EQ(a.learned, b.learned);
  EXPECT_EQ(a.precision, b.precision);
}

void expect_recorded(const std::vector<std::string>& more, bool isotropic) {
  const Folder folder;
  HeadsRun trained(folder, "run", more);
  trained.go();
  const std::vector<HeadFrame> frames = read_heads(trained.path);
  ASSERT_EQ(frames.size(), 4u);  // before training and after every epoch
  const GaussianHeads initial = gaussian_heads(*trained.training.make().model), final_heads = gaussian_heads(load(trained.path / "last"));
  double moved = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(frames[i].epoch, static_cast<int64_t>(i));
    EXPECT_EQ(frames[i].step, 4 * static_cast<int64_t>(i));
    EXPECT_EQ(frames[i].heads.grid, (std::array<int64_t, 2>{4, 4}));
    ASSERT_EQ(frames[i].heads.layers.size(), 2u);
    for (const GaussianLayer& layer : frames[i].heads.layers) ASSERT_EQ(layer.heads.size(), 3u);
  }
  for (size_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(frames[0].heads.layers[layer].name, "vit.encoder.layer." + std::to_string(layer) + ".attention");
    for (size_t h = 0; h < 3; ++h) {
      const GaussianHead &first = frames[0].heads.layers[layer].heads[h], &last = frames[3].heads.layers[layer].heads[h];
      EXPECT_EQ(first.isotropic(), isotropic);
      expect_same_head(first, initial.layers[layer].heads[h]);
      expect_same_head(last, final_heads.layers[layer].heads[h]);
      moved = std::max(moved, std::abs(first.center[0] - last.center[0]));
    }
  }
  EXPECT_GT(moved, 1e-3);
  // The derived numbers are stored next to the learned ones.
  std::istringstream lines(get(trained.path / "heads.jsonl"));
  std::string line;
  std::getline(lines, line);
  const Json head = Json::parse(line)["layers"][1]["heads"][2];
  const GaussianHead& same = frames[0].heads.layers[1].heads[2];
  EXPECT_EQ(head["center"][0].get<float>(), static_cast<float>(same.center[0]));
  EXPECT_EQ(head.contains("alpha"), isotropic);
  for (const auto& [name, mass] : {std::pair("contour_50", 0.5), std::pair("contour_90", 0.9)}) {
    EXPECT_NEAR(head[name][0].get<double>(), contour(same, mass)->longer, 1e-5);
    EXPECT_NEAR(head[name][1].get<double>(), contour(same, mass)->shorter, 1e-5);
    EXPECT_NEAR(head[name][2].get<double>(), contour(same, mass)->angle, 1e-5);
  }
  EXPECT_NEAR(head["covariance"][1][1].get<double>(), (*same.covariance())[2], 1e-5);
  for (const auto& file : std::filesystem::directory_iterator(trained.path))
    if (file.path().filename().string().starts_with("events"))
      for (const char* tag : {"heads/layer_0", "heads/layer_1"}) {
        const std::string events = get(file.path());
        int images = 0;
        for (size_t at = events.find(tag); at != events.npos; at = events.find(tag, at + 1)) ++images;
        EXPECT_EQ(images, 4) << tag;
      }
}

TEST(HeadRecord, a_run_records_its_heads) { expect_recorded({}, true); }
TEST(HeadRecord, a_run_records_heads_of_any_covariance) { expect_recorded({"position=gaussian_full", "average=0.5"}, false); }

TEST(HeadRecord, a_run_without_gaussian_positions_records_none) {
  const Folder folder;
  HeadsRun trained(folder, "run", {"position=relative_2d", "epochs=1"});
  trained.go();
  EXPECT_FALSE(std::filesystem::exists(trained.path / "heads.jsonl"));
  expect_error<FileError>([&] { lab::read_heads_run(trained.path); }, "heads.jsonl: this run recorded no heads, expected a model with");
}

TEST(HeadRecord, an_interrupted_run_leaves_the_same_bytes) {
  const Folder folder;
  HeadsRun uninterrupted(folder, "uninterrupted");
  uninterrupted.go();
  const std::string expected = get(uninterrupted.path / "heads.jsonl");
  EXPECT_EQ(std::count(expected.begin(), expected.end(), '\n'), 4);

  HeadsRun stopped(folder, "stopped");
  for (const int64_t steps : {2, 5, 8}) stopped.go(steps);
  stopped.go();
  EXPECT_TRUE(get(stopped.path / "heads.jsonl") == expected);

  HeadsRun killed(folder, "killed");  // one and a half lines more than at the last checkpoint
  killed.go(6);
  put(killed.path / "heads.jsonl", get(killed.path / "heads.jsonl") + expected.substr(0, expected.find('\n') + 30));
  killed.go();
  EXPECT_TRUE(get(killed.path / "heads.jsonl") == expected);

  HeadsRun lost(folder, "lost");  // without a usable checkpoint
  lost.go(1);
  std::filesystem::remove_all(lost.path / "checkpoints");
  lost.go();
  EXPECT_TRUE(get(lost.path / "heads.jsonl") == expected);
}

TEST(HeadRecord, invalid_lines_are_named) {
  const Folder folder;
  const std::string good = head_line(frame_of({round_head(1), gaussian_head({1, 0, 0.5f, 1}, {1, -2})}));
  const auto refused = [&](const std::string& text, const std::string& message) {
    put(folder / "heads.jsonl", text);
    expect_error<FileError>([&] { read_heads(folder.path()); }, message);
  };
  refused("{}\n", "heads.jsonl: line 1: found no \"epoch\", expected one");
  refused(good + "\nhello\n", "heads.jsonl: line 2");
  refused(good + "\n" + head_line(frame_of({round_head(1)})) + "\n", "line 2: found other layers, heads or tokens than in the first line");
  refused(R"({"epoch":0,"step":0,"grid":[8,8],"layers":[]})"
          "\n",
          "line 1: found no layers");
  refused(R"({"epoch":0,"step":0,"grid":[0,8],"layers":[]})"
          "\n",
          "line 1: found a grid of 0 x 8");
  refused(R"({"epoch":0,"step":0,"grid":[8,8],"layers":[{"name":"a","heads":[{"center":[0,0],"spread":[[1]]}]}]})"
          "\n",
          "line 1: layers[0].heads[0]: found a spread of 1 numbers, expected 2 x 2");
  put(folder / "heads.jsonl", good + "\n" + good.substr(0, 20));  // the run is writing it
  ASSERT_EQ(read_heads(folder.path()).size(), 1u);
  expect_same_head(read_heads(folder.path())[0].heads.layers[0].heads[1], gaussian_head({1, 0, 0.5f, 1}, {1, -2}));
  put(folder / "heads.jsonl", head_line(frame_of({round_head(std::nanf(""), 1, 1)})) + "\n");  // NaN is read back
  EXPECT_TRUE(std::isnan(read_heads(folder.path())[0].heads.layers[0].heads[0].learned[0]));
}

}  // namespace
}  // namespace heed::test
