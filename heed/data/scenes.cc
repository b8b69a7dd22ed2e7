// Synthetic scenes: shapes of named colours and sizes in named places, and a caption that says so.
#include <algorithm>

#include "heed/data/captions.h"
#include "heed/data/painted_shapes.h"

namespace heed {
namespace {

struct NamedColour {
  const char* name;
  Rgb value;
};
constexpr std::array<NamedColour, 8> kColours{{{"red", {220, 40, 40}},
                                               {"orange", {240, 140, 30}},
                                               {"yellow", {240, 225, 60}},
                                               {"green", {50, 180, 70}},
                                               {"blue", {50, 90, 230}},
                                               {"purple", {150, 60, 200}},
                                               {"pink", {250, 150, 195}},
                                               {"white", {240, 240, 240}}}};

struct NamedSize {
  const char* name;
  double least, most;  // radius as a share of the side
};
constexpr std::array<NamedSize, 2> kSizes{{{"small", 0.10, 0.13}, {"large", 0.18, 0.22}}};

struct Place {
  const char* name;
  double x, y;  // shares of the side
};
constexpr std::array<Place, 5> kPlaces{{{"at the top left", 0.25, 0.25},
                                        {"at the top right", 0.75, 0.25},
                                        {"at the bottom left", 0.25, 0.75},
                                        {"at the bottom right", 0.75, 0.75},
                                        {"in the middle", 0.5, 0.5}}};
constexpr int64_t kCorners = 4;  // the first places

template <class T, size_t n>
const T& any_of_these(Draws& draws, const std::array<T, n>& list) {
  return list[static_cast<size_t>(draws.below(n))];
}

struct SceneShape {
  PaintedShape painted = {};
  std::string caption = {};
};

SceneShape draw_scene_shape(Draws& draws, int64_t kind, const std::string& name, const Place& place, double side) {
  constexpr double kJitter = 15, kShift = 0.03;  // of a colour channel, and of the place as a share of the side
  const NamedColour& colour = any_of_these(draws, kColours);
  const NamedSize& size = any_of_these(draws, kSizes);
  SceneShape out{.painted = {.kind = kind, .radius = side * draws.between(size.least, size.most), .angle = draws.between(-0.4, 0.4)}};
  out.painted.middle = {side * (place.x + draws.between(-kShift, kShift)), side * (place.y + draws.between(-kShift, kShift))};
  for (size_t channel = 0; channel < 3; ++channel)
    out.painted.fill[channel] = std::clamp(colour.value[channel] + draws.between(-kJitter, kJitter), 0.0, 255.0);
  out.caption = std::string("a ") + size.name + " " + colour.name + " " + name + " " + place.name;
  return out;
}

// A caption and what it is about; without painting, which takes longer.
struct Scene {
  std::vector<PaintedShape> shapes = {};
  std::string caption = {};
  PaintedBackground background = {};
};

Scene draw_scene(const std::vector<std::string>& names, int64_t side, RandomKey key) {
  Draws draws(key);
  const auto whole = static_cast<double>(side);
  const bool two = draws.coin();
  const int64_t kinds = std::ssize(names), first_kind = draws.below(kinds), other_kind = (first_kind + 1 + draws.below(kinds - 1)) % kinds;
  const int64_t first_place = draws.below(two ? kCorners : std::ssize(kPlaces)),
                other_place = (first_place % kCorners + 1 + draws.below(kCorners - 1)) % kCorners;
  Scene out;
  const auto add = [&](int64_t kind, int64_t place) {
    const SceneShape shape = draw_scene_shape(draws, kind, names[static_cast<size_t>(kind)], kPlaces[static_cast<size_t>(place)], whole);
    out.shapes.push_back(shape.painted);
    out.caption += (out.caption.empty() ? "" : " and ") + shape.caption;
  };
  add(first_kind, first_place);
  if (two) add(other_kind, other_place);
  out.background = {.middle = {whole / 2, whole / 2}, .direction = draws.between(0, 2 * std::numbers::pi)};
  for (Rgb* colour : {&out.background.start, &out.background.end})
    for (double& channel : *colour) channel = draws.between(5, 70);
  out.background.noise = draws.between(2, 10);
  return out;
}

}  // namespace

CaptionedImages synthetic_scenes(const ScenesOptions& options) {
  check(options.count >= 0 && options.side >= 16 && options.side <= 4096, "synthetic_scenes: found ", options.count, " images of side ",
        options.side, ", expected at least 0 images of side 16 to 4096");
  const std::vector<std::string> names = shape_names();
  const auto key = [options](int64_t i) { return RandomKey{options.seed, static_cast<uint64_t>(i)}; };
  CaptionedImages out{.images = {.source = "scenes"}};
  for (int64_t i = 0; i < options.count; ++i) {
    out.image_of.push_back(i);
    out.captions.push_back(draw_scene(names, options.side, key(i)).caption);
  }
  out.images.labels.resize(static_cast<size_t>(options.count));
  out.images.image = [=](int64_t i) {
    check(i >= 0 && i < options.count, "image: found number ", i, ", expected one below ", options.count);
    const Scene scene = draw_scene(names, options.side, key(i));
    return paint_shapes(options.side, scene.shapes, scene.background, Draws(key(i), 1));
  };
  out.images.name = [seed = options.seed](int64_t i) { return "scenes: image " + std::to_string(i) + " of seed " + std::to_string(seed); };
  return out;
}

}  // namespace heed
