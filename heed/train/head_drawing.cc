#include "heed/train/head_drawing.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heed {
namespace {

using HeadPoint = Drawing::Point;
using HeadPoints = std::vector<HeadPoint>;

constexpr Colour kHeadPaper{255, 255, 255}, kHeadGround{248, 248, 247}, kHeadCells{236, 237, 235}, kHeadEdge{205, 208, 206},
    kHeadQuery{214, 217, 215}, kHeadInk{28, 32, 36};
constexpr double kHeadPanel = 260, kHeadTitle = 22, kHeadMargin = 6;

struct HeadBox {
  double left, top, right, bottom;
};

// Clips a polygon to a box, one side after the other (Sutherland and Hodgman 1974).
HeadPoints clip_area(HeadPoints points, const HeadBox& box) {
  for (int side = 0; side < 4; ++side) {
    const auto inside = [&](HeadPoint p) {  // distance inside this side
      return side == 0 ? p.x - box.left : side == 1 ? box.right - p.x : side == 2 ? p.y - box.top : box.bottom - p.y;
    };
    HeadPoints clipped;
    for (size_t i = 0; i < points.size(); ++i) {
      const HeadPoint a = points[i], b = points[(i + 1) % points.size()];
      const double here = inside(a), next = inside(b);
      if (here >= 0) clipped.push_back(a);
      if ((here >= 0) != (next >= 0))
        clipped.push_back({a.x + here / (here - next) * (b.x - a.x), a.y + here / (here - next) * (b.y - a.y)});
    }
    points = std::move(clipped);
  }
  return points;
}

// Clips a polyline to a box, segment by segment (Liang and Barsky 1984).
std::vector<HeadPoints> clip_line(const HeadPoints& points, const HeadBox& box) {
  std::vector<HeadPoints> out;
  bool joined = false;  // the next segment continues the last piece
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    const HeadPoint a = points[i], b = points[i + 1];
    double from = 0, to = 1;
    const auto cut = [&](double inside_a, double inside_b) {
      if (inside_a < 0 && inside_b < 0) to = -1;
      if (inside_a < 0 && inside_b >= 0) from = std::max(from, inside_a / (inside_a - inside_b));
      if (inside_a >= 0 && inside_b < 0) to = std::min(to, inside_a / (inside_a - inside_b));
    };
    cut(a.x - box.left, b.x - box.left);
    cut(box.right - a.x, box.right - b.x);
    cut(a.y - box.top, b.y - box.top);
    cut(box.bottom - a.y, box.bottom - b.y);
    if (!(from <= to)) {
      joined = false;
      continue;
    }
    const auto at = [&](double share) { return HeadPoint{a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)}; };
    if (!joined || from > 0) out.push_back({at(from)});
    out.back().push_back(at(to));
    joined = to == 1;
  }
  return out;
}

struct HeadPanel {
  HeadPlace place;

  HeadBox box() const { return {place.x, place.y, place.x + place.side, place.y + place.side}; }
  double token() const { return place.side / 2 / place.reach; }
  HeadPoint at(double down, double along) const {
    return {place.x + place.side / 2 + along * token(), place.y + place.side / 2 + down * token()};
  }
  bool shows(HeadPoint p) const {
    const HeadBox b = box();
    return p.x >= b.left && p.x <= b.right && p.y >= b.top && p.y <= b.bottom;
  }
  HeadPoint centre(const GaussianHead& head) const { return at(head.looks_at()[0], head.looks_at()[1]); }
  HeadPoints outline(const GaussianHead& head, double mass) const {
    const std::optional<Ellipse> ellipse = contour(head, mass);
    HeadPoints out;
    if (!ellipse || !std::isfinite(head.center[0]) || !std::isfinite(head.center[1])) return out;
    const auto [down, along] = head.looks_at();
    constexpr int steps = 72;
    for (int i = 0; i <= steps; ++i) {
      const auto [y, x] = ellipse->at(2 * std::numbers::pi * i / steps);
      out.push_back(at(down + y, along + x));
    }
    return out;
  }
};

void draw_head_ground(Drawing& to, const HeadPanel& panel) {
  const HeadPlace& place = panel.place;
  to.add(Drawing::Rectangle{place.x, place.y, place.side, place.side, kHeadGround});
  const HeadPoint query = panel.at(-0.5, -0.5);
  to.add(Drawing::Rectangle{query.x, query.y, panel.token(), panel.token(), kHeadQuery});
  for (double line = 0.5; line < place.reach; ++line)
    for (const double side : {-line, line}) {
      const HeadPoint cross = panel.at(side, side);
      to.add(Drawing::Line{{{cross.x, place.y}, {cross.x, place.y + place.side}}, kHeadCells, 0.7});
      to.add(Drawing::Line{{{place.x, cross.y}, {place.x + place.side, cross.y}}, kHeadCells, 0.7});
    }
  const HeadBox b = panel.box();
  to.add(Drawing::Line{{{b.left, b.top}, {b.right, b.top}, {b.right, b.bottom}, {b.left, b.bottom}, {b.left, b.top}}, kHeadEdge, 1});
}

void draw_head_line(Drawing& to, const HeadPanel& panel, const HeadPoints& points, Colour colour, double thickness) {
  for (HeadPoints& piece : clip_line(points, panel.box())) to.add(Drawing::Line{std::move(piece), colour, thickness});
}

}  // namespace

Colour head_colour(size_t head) {
  constexpr Colour colours[kHeadColours]{{53, 102, 196}, {212, 103, 42}, {23, 138, 108}, {176, 58, 142}, {143, 111, 0}, {109, 83, 200},
                                         {194, 56, 74},  {75, 118, 131}, {122, 74, 30},  {15, 139, 179}, {92, 138, 30}, {209, 79, 134}};
  return colours[head % kHeadColours];
}

double head_reach(std::span<const HeadFrame> frames) {
  double farthest = 0, most = 3;
  for (const HeadFrame& frame : frames) {
    most = std::max(most, static_cast<double>(std::max(frame.heads.grid[0], frame.heads.grid[1]) - 1));
    for (const GaussianLayer& layer : frame.heads.layers)
      for (const GaussianHead& head : layer.heads)
        for (const double part : head.center)
          if (std::isfinite(part)) farthest = std::max(farthest, std::abs(part));
  }
  return std::clamp(std::ceil(farthest) + 1, 4.0, std::max(most, 4.0)) + 0.5;
}

void draw_heads(Drawing& to, const HeadPlace& place, std::span<const HeadFrame> frames, size_t layer) {
  check(!frames.empty() && layer < frames.back().heads.layers.size(), "heads: no layer ", layer, " to draw");
  const HeadPanel panel{place};
  draw_head_ground(to, panel);
  const std::vector<GaussianHead>& heads = frames.back().heads.layers[layer].heads;
  for (size_t h = 0; h < heads.size(); ++h)
    if (HeadPoints within = clip_area(panel.outline(heads[h], 0.5), panel.box()); !within.empty())
      to.add(Drawing::Area{std::move(within), head_colour(h), 0.16});
  for (size_t h = 0; h < heads.size(); ++h) {
    draw_head_line(to, panel, panel.outline(heads[h], 0.9), mixed(kHeadPaper, head_colour(h), 0.55), 0.8);
    draw_head_line(to, panel, panel.outline(heads[h], 0.5), head_colour(h), 1.2);
  }
  for (size_t h = 0; h < heads.size(); ++h) {
    HeadPoints path;
    for (const HeadFrame& frame : frames)
      if (const HeadPoint point = panel.centre(frame.heads.layers[layer].heads[h]); std::isfinite(point.x) && std::isfinite(point.y))
        path.push_back(point);
    if (path.empty()) continue;
    draw_head_line(to, panel, path, head_colour(h), 1.6);
    if (frames.size() > 1 && panel.shows(path.front())) {
      to.add(Drawing::Dot{path.front().x, path.front().y, 3, head_colour(h)});
      to.add(Drawing::Dot{path.front().x, path.front().y, 1.8, kHeadPaper});
    }
    if (panel.shows(path.back())) to.add(Drawing::Dot{path.back().x, path.back().y, 3.6, head_colour(h)});
  }
}

std::vector<SvgOptions::Ink> head_inks() {
  std::vector<SvgOptions::Ink> out{{kHeadPaper, "paper"}, {kHeadGround, "ground"}, {kHeadCells, "cells"},
                                   {kHeadEdge, "edge"},   {kHeadQuery, "query"},   {kHeadInk, "ink"}};
  for (size_t h = 0; h < kHeadColours; ++h) out.push_back({head_colour(h), "c" + std::to_string(h)});
  return out;
}

Drawing head_panel(std::span<const HeadFrame> frames, size_t layer) {
  Drawing out(std::lround(kHeadPanel + 2 * kHeadMargin), std::lround(kHeadPanel + kHeadTitle + kHeadMargin));
  out.add(Drawing::Text{kHeadMargin, kHeadTitle / 2, "layer " + std::to_string(layer), 11, Drawing::Anchor::start, false, kHeadInk});
  out.add(Drawing::Text{kHeadMargin + kHeadPanel, kHeadTitle / 2, "epoch " + std::to_string(frames.back().epoch), 11, Drawing::Anchor::end,
                        false, kHeadInk});
  draw_heads(out, {kHeadMargin, kHeadTitle, kHeadPanel, head_reach(frames)}, frames, layer);
  return out;
}

}  // namespace heed
