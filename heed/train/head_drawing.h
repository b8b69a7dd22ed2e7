// Drawings of heads with Gaussian positions: the query in the centre, the attention centre of each head, the contours that enclose 50% and
// 90% of its weight, and the path of the centre over training.
#pragma once

#include <span>

#include "heed/io/drawing.h"
#include "heed/train/head_record.h"

namespace heed {

Colour head_colour(size_t head);  // repeats after kHeadColours
inline constexpr size_t kHeadColours = 12;

// Tokens to show on each side of the query so that all centres are visible, limited to the image.
double head_reach(std::span<const HeadFrame> frames);

struct HeadPlace {
  double x, y, side;  // of a square
  double reach;       // tokens from the query to its edge
};
// Draws the last frame, and the path of each centre through all frames.
void draw_heads(Drawing& to, const HeadPlace& place, std::span<const HeadFrame> frames, size_t layer);

// CSS names of the colours: "c0" to "c11" for heads, "paper", "ground", "cells", "edge", "query", "ink".
std::vector<SvgOptions::Ink> head_inks();

Drawing head_panel(std::span<const HeadFrame> frames, size_t layer);  // one layer with a title

}  // namespace heed
