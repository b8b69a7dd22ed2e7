// The head experiment: contours contain the stated mass, alarms are raised, and the page shows a run.
#include "heed/lab/heads.h"

#include <cmath>
#include <numbers>

#include "heed/attention/probabilities.h"
#include "heed/train/head_drawing.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

GaussianHead round_head(float alpha, double down = 0, double along = 0) { return gaussian_head({alpha}, {down, along}); }

// Whether a point relative to the centre is inside the ellipse.
bool within(const Ellipse& ellipse, double down, double along) {
  const double far = down * std::sin(ellipse.angle) + along * std::cos(ellipse.angle);
  const double side = down * std::cos(ellipse.angle) - along * std::sin(ellipse.angle);
  return std::pow(far / ellipse.longer, 2) + std::pow(side / ellipse.shorter, 2) <= 1;
}

double score(const GaussianHead& head, double down, double along) {
  const auto [dd, da, aa] = head.precision;
  return dd * down * down + 2 * da * down * along + aa * along * along;
}

TEST(Heads, contours_contain_the_stated_mass) {
  for (const GaussianHead& head :
       {round_head(0.7f), gaussian_head({1.1f, 0.8f, -0.3f, 0.5f}, {1, 2}), gaussian_head({0.4f, 0, 0, 2}, {0, 0})})
    for (const double mass : {0.5, 0.9}) {
      const std::optional<Ellipse> ellipse = contour(head, mass);
      ASSERT_TRUE(ellipse);
      EXPECT_GE(ellipse->longer, ellipse->shorter);
      for (int i = 0; i < 8; ++i) {  // every point of it has the same score
        const auto [down, along] = ellipse->at(i * std::numbers::pi / 4 + 0.1);
        EXPECT_NEAR(score(head, down, along), -std::log(1 - mass), 1e-6);
      }
      constexpr double step = 0.02;
      double inside = 0, all = 0;
      for (double down = -8; down <= 8; down += step)
        for (double along = -8; along <= 8; along += step) {
          const double weight = std::exp(-score(head, down, along));
          all += weight;
          if (within(*ellipse, down, along)) inside += weight;
        }
      EXPECT_NEAR(inside / all, mass, 2e-3);
    }
  EXPECT_NEAR(contour(round_head(0.7f), 0.5)->longer, std::sqrt(std::log(2) / 0.7), 1e-6);
  EXPECT_NEAR(contour(round_head(0.7f), 0.9)->shorter, std::sqrt(std::log(10) / 0.7), 1e-6);
  EXPECT_FALSE(contour(round_head(-1), 0.5));
  EXPECT_FALSE(contour(round_head(std::nanf("")), 0.5));
  expect_error([] { contour(round_head(1), 1); }, "contour: a mass of 1, expected one between 0 and 1");
}

// Checked against the weights of attention itself, not the formula.
TEST(Heads, contours_match_the_attention_weights) {
  constexpr int64_t rows = 41, columns = 47, N = rows * columns, query = 20 * columns + 23;
  const std::vector<float> spread{0.14f, 0.06f, -0.04f, 0.2f}, center{4, -7};
  const Tensor nothing = Tensor::zeros({1, 1, N, 1}, kCpu);
  const Gaussian2dFull term{
      .spread = Tensor::from(spread, {1, 2, 2}, kCpu), .center = Tensor::from(center, {1, 2}, kCpu), .width = columns};
  const std::vector<float> weights =
      slice(attention_probabilities(nothing, nothing, {.terms = {term}}), 2, query, query + 1).to_vector<float>();
  const GaussianHead head = gaussian_head(spread, {center[0], center[1]});
  EXPECT_EQ(head.looks_at(), (std::array{-4.0, 7.0}));
  for (const double mass : {0.5, 0.9}) {
    double inside = 0;
    for (int64_t k = 0; k < N; ++k)
      if (within(*contour(head, mass), static_cast<double>(k / columns - 20) + 4, static_cast<double>(k % columns - 23) - 7))
        inside += weights[static_cast<size_t>(k)];
    EXPECT_NEAR(inside, mass, 0.04);  // keys are discrete, and those near the contour have weight
  }
  const auto covariance = head.covariance();
  ASSERT_TRUE(covariance);  // of the weights themselves
  double down = 0, both = 0, along = 0;
  for (int64_t k = 0; k < N; ++k) {
    const double y = static_cast<double>(k / columns - 20) + 4, x = static_cast<double>(k % columns - 23) - 7,
                 w = weights[static_cast<size_t>(k)];
    down += w * y * y, both += w * y * x, along += w * x * x;
  }
  EXPECT_NEAR((*covariance)[0], down, 0.05 * down);
  EXPECT_NEAR((*covariance)[1], both, 0.05 * std::abs(both));
  EXPECT_NEAR((*covariance)[2], along, 0.05 * along);
}

HeadFrame frame_of(const std::vector<GaussianHead>& heads, int64_t epoch = 0) {
  return {.epoch = epoch, .step = 10 * epoch, .heads = {.grid = {8, 8}, .layers = {{"layer.0", heads}}}};
}

TEST(Heads, degenerate_heads_raise_alarms) {
  using Kind = HeadAlarm::Kind;
  EXPECT_TRUE(alarms_of(frame_of({round_head(1), round_head(1, 2, -1), round_head(4, 0, 0), gaussian_head({1, 0.2f, 0, 1}, {3, 3})}).heads)
                  .empty());
  const auto only = [](const std::vector<GaussianHead>& heads) {
    const std::vector<HeadAlarm> all = alarms_of(frame_of(heads).heads);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? HeadAlarm() : all[0];
  };
  EXPECT_EQ(only({round_head(-0.1f)}).kind, Kind::no_gaussian);
  EXPECT_EQ(only({round_head(0)}).kind, Kind::no_gaussian);
  EXPECT_EQ(only({round_head(std::nanf(""))}).kind, Kind::no_gaussian);
  EXPECT_EQ(only({gaussian_head({1, 2, 2, 4}, {0, 0})}).kind, Kind::no_gaussian);  // no width in one direction: it is singular
  EXPECT_EQ(only({round_head(0.001f)}).kind, Kind::everywhere);                    // a deviation of 22 tokens
  EXPECT_EQ(only({gaussian_head({1, 0, 0, 0.03f}, {0, 0})}).kind, Kind::everywhere);
  EXPECT_EQ(only({round_head(20)}).kind, Kind::one_key);
  EXPECT_EQ(only({round_head(1, 0, 7.5)}).kind, Kind::outside);
  EXPECT_EQ(only({round_head(1, -7.5, 0)}).kind, Kind::outside);
  EXPECT_EQ(only({round_head(1, std::nan(""), 0)}).kind, Kind::outside);
  const HeadAlarm twins = only({round_head(1, 2, 2), round_head(1, 0, 0), round_head(1.02f, 2.05, 2)});
  EXPECT_EQ(twins.kind, Kind::twins);
  EXPECT_EQ(twins.head, 2u);
  EXPECT_EQ(twins.twin, 0u);
  EXPECT_NEAR(head_overlap(round_head(1), round_head(1, 1, 0)), std::exp(-0.25), 1e-9);  // exp(-alpha d^2 / 4)
  EXPECT_NEAR(head_overlap(round_head(1), round_head(4)), 0.8, 1e-9);                    // 2 sqrt(ab) / (a + b)

  const std::vector<HeadFrame> frames{frame_of({round_head(1), round_head(20)}, 0), frame_of({round_head(-1), round_head(1)}, 1),
                                      frame_of({round_head(-1), round_head(20)}, 2)};
  const std::vector<lab::LastingAlarm> lasting = lab::lasting_alarms(frames);
  ASSERT_EQ(lasting.size(), 2u);
  EXPECT_EQ(lasting[0].since, 1);
  EXPECT_EQ(lasting[1].since, 2);  // the alarm was not raised in between
}

// --- the page

lab::HeadsRun example_run() {
  lab::HeadsRun out{.figure = "accuracy"};
  out.run.task = "classify";
  out.run.name = "</script>run";
  for (int64_t epoch = 0; epoch <= 6; ++epoch) {
    const double share = static_cast<double>(epoch) / 6;
    out.frames.push_back(
        frame_of({round_head(1, 3 - 3 * share, 2), gaussian_head({1, 0.3f, 0, 0.5f}, {-2, 4 - 4 * share}), round_head(-1, 0, 0)}, epoch));
    if (epoch > 0) out.run.epochs.push_back({epoch, 10 * epoch, {{"validation_accuracy", 0.1 + 0.1 * static_cast<double>(epoch)}}});
  }
  return out;
}

TEST(Heads, means_and_json_of_a_run_are_correct) {
  const lab::HeadsRun run = example_run();
  const lab::LayerMeans means = lab::means_of({"", {round_head(0.5f, 3, 4), round_head(2, 0, 0), round_head(-1, 0, 1)}});
  EXPECT_NEAR(means.distance, 2, 1e-9);
  EXPECT_NEAR(means.deviation, (1 + 0.5) / 2, 1e-9);  // 1 / sqrt(2 alpha)
  const Json json = lab::heads_json(run);
  EXPECT_EQ(json["epochs"], 6);
  EXPECT_EQ(json["validation_accuracy"].size(), 6u);
  ASSERT_EQ(json["alarms"].size(), 1u);
  EXPECT_EQ(json["alarms"][0]["head"], 2);
  EXPECT_EQ(json["alarms"][0]["since_epoch"], 0);
  std::ostringstream printed;
  lab::print_heads(printed, run);
  EXPECT_NE(printed.str().find("alarm: layer 0 head 2 no Gaussian since epoch 0: alpha is -1"), std::string::npos) << printed.str();
  EXPECT_NE(printed.str().find("validation accuracy 70.0 %"), std::string::npos) << printed.str();
}

TEST(Heads, the_folder_contains_page_drawings_and_animation) {
  const Folder folder;
  const lab::HeadsRun run = example_run();
  lab::write_heads(folder / "page", run);
  lab::write_heads(folder / "page", run);  // replaces an earlier one
  for (const char* name : {"index.html", "heads.json", "start.svg", "end.svg", "end.png", "film.png"})
    EXPECT_FALSE(get(folder / "page" / name).empty()) << name;
  const std::string page = get(folder / "page/index.html"), film = get(folder / "page/film.png"), end = get(folder / "page/end.svg");
  EXPECT_EQ(page.find("</script>run"), std::string::npos);
  EXPECT_NE(page.find("data-layer=\"0\""), std::string::npos);
  for (const char* none : {"\"nan", " nan", "Mnan", "Lnan"}) EXPECT_EQ(end.find(none), std::string::npos);
  EXPECT_GT(end.size(), get(folder / "page/start.svg").size());  // with the trails
  EXPECT_EQ(film.substr(37, 4), "acTL");
  const Image first = read_image(folder / "page/film.png"), drawn = lab::heads_drawing(run, 1, true).pixels();
  EXPECT_TRUE(first.pixels == drawn.pixels);
  std::filesystem::create_directory(folder / "other");
  put(folder / "other/work.txt", "of years");
  expect_error<UsageError>([&] { lab::write_heads(folder / "other", run); }, "contains files other than a heads page");
  EXPECT_EQ(get(folder / "other/work.txt"), "of years");
}

TEST(Heads, drawings_stay_within_their_panels) {
  const std::vector<HeadFrame> frames{frame_of({round_head(1, 0, 0)}), frame_of({round_head(0.001f, 7, 7)}, 1)};
  EXPECT_EQ(head_reach(frames), 7.5);
  EXPECT_EQ(head_reach(std::span(frames).first(1)), 4.5);
  Drawing drawing(60, 60);
  draw_heads(drawing, {20, 20, 20, 4.5}, frames, 0);
  const Image pixels = drawing.pixels();
  for (int64_t y = 0; y < 60; ++y)
    for (int64_t x = 0; x < 60; ++x) {
      if (x >= 18 && x < 42 && y >= 18 && y < 42) continue;
      EXPECT_EQ(pixels.pixels[static_cast<size_t>(3 * (y * 60 + x))], 255) << x << ' ' << y;
    }
}

}  // namespace
}  // namespace heed::test
