// Event file contents other than curves: tags, and images that can be decoded and show the right content.
#include "heed/train/train_events.h"

#include "heed/io/drawing.h"
#include "heed/models/inspect.h"
#include "tests/train/toy.h"

namespace heed::test {
namespace {

std::string events_in(const Path& run) {
  for (const auto& entry : std::filesystem::directory_iterator(run))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) return get(entry.path());
  return {};
}

int64_t times(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// The PNG files in an event file.
std::vector<Image> images_in(const std::string& events) {
  std::vector<Image> out;
  for (size_t at = events.find("\x89PNG"); at != std::string::npos; at = events.find("\x89PNG", at + 1)) {
    const std::string_view file = std::string_view(events).substr(at, events.find("IEND", at) + 8 - at);
    out.push_back(parse_image(std::as_bytes(std::span(file)), "image"));
  }
  return out;
}

// The toy model with a tracked sample.
Task tracking_task(const std::string& attention = "soft") {
  Json config = model_config({.layers = 2, .heads = 2, .width = 16, .patch = 4, .model = {{"image_size", 8}}});
  config["heed"]["attention"] = attention;
  set_labels(config, {"dark", "grey", "bright"});
  Task task{.name = "toy", .model = std::make_shared<Model>(make_model(config))};
  task.tracked = {.inputs = {{"pixel_values", Tensor::ones({1, 3, 8, 8}, kCpu)}}, .image = {8, 8, std::vector<uint8_t>(3 * 64, 200)}};
  return task;
}

TEST(TrainEvents, a_run_shows_samples_once_and_attention_after_every_epoch) {
  const Folder folder;
  ToyRun run(folder);
  Task task = toy(quick());
  task.tracked = tracking_task().tracked;
  task.first_samples = [] {
    return std::vector<Sample>{{.truth = "grey", .image = {8, 4, std::vector<uint8_t>(96, 7)}},
                               {.truth = "", .image = {4, 8, std::vector<uint8_t>(96, 9)}}};
  };
  train_model(task, quick(), run.run);
  const std::string events = events_in(run.path);
  EXPECT_EQ(times(events, "\n\x07samples"), 1);      // with its length byte, unlike samples_per_second
  EXPECT_EQ(times(events, "attention/layer_0"), 3);  // not histograms
  EXPECT_EQ(times(events, "attention/layer_1"), 0);
  const std::vector<Image> images = images_in(events);
  ASSERT_EQ(images.size(), 4u);
  EXPECT_EQ(images[0].width, 2 * 72);
  EXPECT_EQ(images[0].pixels[3 * 63], 7);  // the first is as wide as its tile
  EXPECT_EQ(images[0].pixels[3 * 72], 9);  // the second half as wide
  EXPECT_EQ(images[0].pixels[3 * 105], 255);
}

// A class token and 2 x 2 patches: the mean is large, the two heads are next to it, coloured by the attention of the class token.
TEST(TrainEvents, a_layer_is_the_mean_of_its_heads_and_each_of_them) {
  const Folder folder;
  const NoGrad no_grad;
  const Task task = tracking_task();
  {
    EventFile events(folder.path());
    write_attention(events, task, 5);
  }
  const std::vector<Image> images = images_in(events_in(folder.path()));
  ASSERT_EQ(images.size(), 2u);
  const TensorMap out = (*task.model)(task.tracked.inputs, {.attentions = true});
  for (size_t layer = 0; layer < 2; ++layer) {
    const Image& found = images[layer];
    EXPECT_EQ(found.width, 192 + 8 + 92);
    EXPECT_EQ(found.height, 192);
    const AttentionMaps maps = maps_in(out, "attentions.", "", {});
    const auto expect_colours = [&](const std::vector<float>& map, int64_t x, int64_t y, int64_t side) {
      const float most = *std::max_element(map.begin() + 1, map.begin() + 5);
      for (int64_t patch = 0; patch < 4; ++patch) {
        const int64_t column = x + side / 4 + patch % 2 * side / 2, row = y + side / 4 + patch / 2 * side / 2;
        const uint8_t* pixel = &found.pixels[static_cast<size_t>(3 * (row * found.width + column))];
        EXPECT_EQ((Colour{pixel[0], pixel[1], pixel[2]}), mixed({200, 200, 200}, heat(map[static_cast<size_t>(1 + patch)] / most), 0.6));
      }
    };
    const auto copied = [](std::span<const float> map) { return std::vector<float>(map.begin(), map.end()); };
    expect_colours(maps.mean(layer), 0, 0, 192);
    expect_colours(copied(maps.map(layer, 0)), 200, 0, 92);
    expect_colours(copied(maps.map(layer, 1)), 200, 100, 92);
  }
}

TEST(TrainEvents, attention_without_maps_shows_none_and_texts_show_weights) {
  const NoGrad no_grad;
  for (const char* kind : {"linear", "channel"}) {
    const Folder folder;
    {
      EventFile events(folder.path());
      write_attention(events, tracking_task(kind), 1);
    }
    EXPECT_TRUE(images_in(events_in(folder.path())).empty()) << kind;
  }
  Json config = model_config({.preset = "transformer-small", .layers = 2, .heads = 3, .width = 12});
  Task task{.name = "toy", .model = std::make_shared<Model>(make_model(config))};
  const auto ids = [](int64_t count) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(2 + i % 7);
    return Tensor::from(out, {1, count}, kCpu);
  };
  task.tracked.inputs = {{"input_ids", ids(40)}, {"labels", ids(5)}};
  task.tracked.columns = std::vector<std::string>(40, "gr\u00fc\u00dfe");
  task.tracked.rows = std::vector<std::string>(5, "a long word that is cut");
  const Folder folder;
  {
    EventFile events(folder.path());
    write_attention(events, task, 1);
  }
  const std::string events = events_in(folder.path());
  for (const char* tag : {"encoder_attention/layer_1", "decoder_attention/layer_1", "cross_attention/layer_1"})
    EXPECT_EQ(times(events, tag), 1) << tag;
  const std::vector<Image> images = images_in(events);
  ASSERT_EQ(images.size(), 6u);
  EXPECT_EQ(images[0].width, 64 + 240 + 2 * (8 + 116));  // at most 24 tokens are shown
  EXPECT_EQ(images[0].height, 64 + 240);
  EXPECT_EQ(images[2].width, 64 + 50 + 2 * (8 + 21));
  EXPECT_EQ(images[4].height, 64 + 50);
}

}  // namespace
}  // namespace heed::test
