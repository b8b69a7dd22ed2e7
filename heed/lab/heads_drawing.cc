// Drawings of heads: all layers side by side, and an animation of their movement during training.
#include <algorithm>
#include <cmath>

#include "heed/io/animated_png.h"
#include "heed/lab/coverage.h"
#include "heed/lab/heads.h"
#include "heed/train/head_drawing.h"
#include "heed/train/report_draw.h"

namespace heed::lab {
namespace {

constexpr double kHeadSide = 210, kHeadGap = 16, kHeadName = 20, kHeadEdge = 12, kHeadCurve = 64, kHeadText = 12;
constexpr Colour kHeadInk{28, 32, 36}, kHeadQuiet{106, 113, 120}, kHeadRule{205, 208, 206}, kHeadLine{53, 102, 196};
constexpr size_t kMostHeadFrames = 120;

constexpr const char* kHeadDark =
    "svg{background:#fff}@media(prefers-color-scheme:dark){svg{background:#131518}.paper{color:#131518}.ground{color:#1b1e22}"
    ".cells{color:#262a30}.edge{color:#3a4047}.query{color:#3a4047}.ink{color:#e7e8ea}.quiet{color:#969da5}.c0{color:#7da6ff}.c1{color:#"
    "ff9d66}"
    ".c2{color:#4fcba6}.c3{color:#ec82c9}.c4{color:#d8b341}.c5{color:#ab97ff}.c6{color:#ff828f}.c7{color:#90bfcc}.c8{color:#d09a6a}"
    ".c9{color:#5cc6ec}.c10{color:#a8d46a}.c11{color:#ff9cc4}}";

struct HeadSheet {
  size_t columns, rows;

  explicit HeadSheet(size_t layers) : columns(layers <= 4 ? layers : layers <= 6 ? 3 : 4), rows((layers + columns - 1) / columns) {}
  double width() const { return 2 * kHeadEdge + static_cast<double>(columns) * (kHeadSide + kHeadGap) - kHeadGap; }
  double height() const { return 2 * kHeadEdge + static_cast<double>(rows) * (kHeadSide + kHeadName + kHeadGap) - kHeadGap; }
};

std::string head_moment(const HeadsRun& run, const HeadFrame& frame) {
  std::string out = frame.epoch == 0 ? "before the first step" : "epoch " + std::to_string(frame.epoch);
  if (const auto value = run.value("validation", frame.epoch)) out += ", validation " + run.figure + " " + figure_text(run.figure, *value);
  return out;
}

// The score of L45: which share of the offsets of a kernel has a head, mean over layers.
std::string head_coverage(const HeadFrame& frame) {
  const std::vector<GaussianLayer>& layers = frame.heads.layers;
  const int64_t K = widest_kernel(layers[0]);
  double covered = 0;
  for (const GaussianLayer& layer : layers) covered += coverage_of(layer, K).covered / static_cast<double>(layers.size());
  return std::to_string(K) + " × " + std::to_string(K) + " offsets with a head: " + std::to_string(std::lround(100 * covered)) + " %";
}

// The metric so far, and the rest of the run in grey.
void draw_head_curve(Drawing& to, const HeadsRun& run, size_t frames, double top) {
  const double left = kHeadEdge, right = static_cast<double>(to.width()) - kHeadEdge, bottom = top + kHeadCurve;
  const double last = static_cast<double>(std::max<int64_t>(run.last().epoch, 1));
  double least = run.figure == "accuracy" ? 0 : 1e300, most = -1e300;
  for (const HeadFrame& frame : run.frames)
    if (const auto value = run.value("validation", frame.epoch)) least = std::min(least, *value), most = std::max(most, *value);
  if (!(most > least)) most = least + 1;
  std::vector<Drawing::Point> all, done;
  for (size_t i = 0; i < run.frames.size(); ++i)
    if (const auto value = run.value("validation", run.frames[i].epoch)) {
      all.push_back({left + (right - left) * static_cast<double>(run.frames[i].epoch) / last,
                     bottom - 2 - (kHeadCurve - 6) * (*value - least) / (most - least)});
      if (i < frames) done.push_back(all.back());
    }
  to.add(Drawing::Line{{{left, bottom}, {right, bottom}}, kHeadRule, 1});
  if (!all.empty()) to.add(Drawing::Line{all, kHeadRule, 1.4});
  const double now = left + (right - left) * static_cast<double>(run.frames[frames - 1].epoch) / last;
  to.add(Drawing::Line{{{now, top}, {now, bottom}}, kHeadRule, 1});
  if (done.empty()) return;
  to.add(Drawing::Line{done, kHeadLine, 2});
  to.add(Drawing::Dot{done.back().x, done.back().y, 3.6, kHeadLine});
}

}  // namespace

Drawing heads_drawing(const HeadsRun& run, size_t to, bool curve) {
  check(to >= 1 && to <= run.frames.size(), "heads: ", to, " frames of ", run.frames.size());
  const std::span<const HeadFrame> frames = std::span(run.frames).first(to);
  const size_t layers = frames.back().heads.layers.size();
  const HeadSheet sheet(layers);
  const double footer = curve ? kHeadCurve + 34 : 22, reach = head_reach(run.frames);
  Drawing out(std::lround(sheet.width()), std::lround(sheet.height() + footer));
  for (size_t layer = 0; layer < layers; ++layer) {
    const double x = kHeadEdge + static_cast<double>(layer % sheet.columns) * (kHeadSide + kHeadGap);
    const double y = kHeadEdge + static_cast<double>(layer / sheet.columns) * (kHeadSide + kHeadName + kHeadGap);
    out.add(Drawing::Text{x, y + kHeadName / 2 - 3, "layer " + std::to_string(layer), kHeadText, Drawing::Anchor::start, false, kHeadInk});
    draw_heads(out, {x, y + kHeadName, kHeadSide, reach}, frames, layer);
  }
  const double text_y = sheet.height() + (curve ? 4 : 2);
  out.add(Drawing::Text{kHeadEdge, text_y, head_moment(run, frames.back()), kHeadText, Drawing::Anchor::start, false, kHeadInk});
  if (curve && layers > 1)
    out.add(
        Drawing::Text{sheet.width() - kHeadEdge, text_y, head_coverage(frames.back()), kHeadText, Drawing::Anchor::end, false, kHeadQuiet});
  if (curve)
    draw_head_curve(out, run, to, text_y + 14);
  else if (layers > 1)
    out.add(Drawing::Text{sheet.width() - kHeadEdge, text_y, to > 1 ? "rings: start; lines: 50 % and 90 %" : "lines: 50 % and 90 %",
                          kHeadText - 1, Drawing::Anchor::end, false, kHeadQuiet});
  return out;
}

std::string heads_svg(const Drawing& drawing) {
  std::vector<SvgOptions::Ink> inks = head_inks();
  inks.push_back({kHeadQuiet, "quiet"});
  return drawing.svg({.inks = inks,
                      .font = "system-ui, sans-serif",
                      .style = kHeadDark,
                      .label = "attention centres of the heads of each layer",
                      .paper = false});
}

std::string heads_film(const HeadsRun& run) {
  std::vector<size_t> shown;  // number of run frames up to each animation frame
  const size_t all = run.frames.size(), most = std::min(all, kMostHeadFrames);
  for (size_t i = 1; i <= most; ++i) shown.push_back(i == 1 ? 1 : 1 + (i - 1) * (all - 1) / (most - 1));
  const double frame_seconds = std::clamp(8.0 / static_cast<double>(most), 0.06, 0.6);
  AnimatedPng film(std::ssize(shown));
  for (size_t i = 0; i < shown.size(); ++i)
    film.add(heads_drawing(run, shown[i], true).pixels(), i == 0 ? 1.2 : i + 1 == shown.size() ? 3 : frame_seconds);
  return film.bytes();
}

}  // namespace heed::lab
