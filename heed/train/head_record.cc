#include "heed/train/head_record.h"

#include <charconv>
#include <cmath>
#include <sstream>

#include "heed/io/json_reader.h"
#include "heed/train/head_drawing.h"

namespace heed {
namespace {

constexpr int64_t kMaxHeadBytes = int64_t{256} << 20;

// The shortest text that reads back as the same float; null if not finite.
std::string float_text(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr};
}

template <class Values>
std::string floats_text(const Values& values) {
  std::string out;
  for (const auto value : values) out += (out.empty() ? "[" : ",") + float_text(value);
  return out + "]";
}

std::string matrix_text(double a, double b, double c, double d) {
  return "[" + floats_text(std::array{a, b}) + "," + floats_text(std::array{c, d}) + "]";
}

std::string contour_text(const GaussianHead& head, double mass) {
  const std::optional<Ellipse> found = contour(head, mass);
  return found ? floats_text(std::array{found->longer, found->shorter, found->angle}) : "null";
}

std::string head_text(const GaussianHead& head) {
  const std::vector<float>& s = head.learned;
  const auto covariance = head.covariance();
  return "{\"center\":" + floats_text(head.center) +
         (head.isotropic() ? ",\"alpha\":" + float_text(s[0]) : ",\"spread\":" + matrix_text(s[0], s[1], s[2], s[3])) +
         ",\"covariance\":" + (covariance ? matrix_text((*covariance)[0], (*covariance)[1], (*covariance)[1], (*covariance)[2]) : "null") +
         ",\"contour_50\":" + contour_text(head, 0.5) + ",\"contour_90\":" + contour_text(head, 0.9) + "}";
}

// null means not finite.
float head_number(const JsonReader& json) {
  return json.json().is_null() ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(json.number());
}

GaussianHead head_from(const JsonReader& json) {
  std::vector<float> learned;
  if (json.json().contains("alpha")) {
    learned = {head_number(json["alpha"])};
  } else {
    for (const JsonReader& row : json["spread"].list())
      for (const JsonReader& value : row.list()) learned.push_back(head_number(value));
    if (learned.size() != 4) json.refuse("found a spread of ", learned.size(), " numbers, expected 2 x 2");
  }
  const JsonReader center = json["center"];
  return gaussian_head(std::move(learned), {head_number(center[size_t{0}]), head_number(center[1])});
}

HeadFrame head_frame_from(const JsonReader& json) {
  HeadFrame out{.epoch = json["epoch"].whole(), .step = json["step"].whole()};
  for (size_t i = 0; i < 2; ++i) out.heads.grid[i] = json["grid"][i].whole();
  if (out.heads.grid[0] <= 0 || out.heads.grid[1] <= 0)
    json.refuse("found a grid of ", out.heads.grid[0], " x ", out.heads.grid[1], ", expected rows and columns");
  for (const JsonReader& layer : json["layers"].list()) {
    GaussianLayer& added = out.heads.layers.emplace_back(GaussianLayer{.name = layer.text("name")});
    for (const JsonReader& head : layer["heads"].list()) added.heads.push_back(head_from(head));
    if (added.heads.empty()) layer.refuse("found a layer without heads, expected some");
  }
  if (out.heads.layers.empty()) json.refuse("found no layers, expected some");
  return out;
}

// All frames must have the same grid, layers and heads.
bool same_heads(const GaussianHeads& a, const GaussianHeads& b) {
  if (a.grid != b.grid || a.layers.size() != b.layers.size()) return false;
  for (size_t i = 0; i < a.layers.size(); ++i)
    if (a.layers[i].heads.size() != b.layers[i].heads.size()) return false;
  return true;
}

}  // namespace

std::string head_line(const HeadFrame& frame) {
  std::string layers;
  for (const GaussianLayer& layer : frame.heads.layers) {
    std::string heads;
    for (const GaussianHead& head : layer.heads) heads += (heads.empty() ? "" : ",") + head_text(head);
    layers += (layers.empty() ? "" : ",") + ("{\"name\":" + Json(layer.name).dump()) + ",\"heads\":[" + heads + "]}";
  }
  return "{\"epoch\":" + std::to_string(frame.epoch) + ",\"step\":" + std::to_string(frame.step) + ",\"grid\":[" +
         std::to_string(frame.heads.grid[0]) + "," + std::to_string(frame.heads.grid[1]) + "],\"layers\":[" + layers + "]}";
}

void record_heads(RunFolder& run, const Model& model, int64_t epoch, int64_t step) {
  const HeadFrame now{.epoch = epoch, .step = step, .heads = gaussian_heads(model)};
  if (now.heads.layers.empty()) return;
  run.add_heads(head_line(now));
  const std::vector<HeadFrame> frames = read_heads(run.path());
  for (size_t layer = 0; layer < now.heads.layers.size(); ++layer)
    run.events().image("heads/layer_" + std::to_string(layer), step, head_panel(frames, layer).pixels());
}

std::vector<HeadFrame> read_heads(const Path& run) {
  const Path path = run / "heads.jsonl";
  std::vector<HeadFrame> out;
  if (!std::filesystem::exists(path)) return out;
  std::istringstream in(read_text(path, kMaxHeadBytes));
  for (std::string line; std::getline(in, line) && !in.eof();) {  // skips an incomplete last line: the run may be in progress
    const std::string where = path.string() + ": line " + std::to_string(out.size() + 1);
    const Json json = parse_json(where, line);
    out.push_back(head_frame_from({json, where}));
    check<FileError>(same_heads(out.front().heads, out.back().heads), where,
                     ": found other layers, heads or tokens than in the first line");
  }
  return out;
}

}  // namespace heed
