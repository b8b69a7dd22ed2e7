// Heads with Gaussian positions as drawings: the query in the middle, round it where each head looks, within which lines half and nine
// tenths of its weight lie, and the way that it has come.
#pragma once

#include <span>

#include "heed/io/drawing.h"
#include "heed/train/head_record.h"

namespace heed {

Colour head_colour(size_t head);  // twelve, then from the first again
inline constexpr size_t kHeadColours = 12;

// How many tokens to each side are to be seen, so that no head leaves the drawing, within the picture.
double head_reach(std::span<const HeadFrame> frames);

struct HeadPlace {
  double x, y, side;  // of a square
  double reach;       // tokens from the query to its edge
};
// The last of the frames, and the way through all of them.
void draw_heads(Drawing& to, const HeadPlace& place, std::span<const HeadFrame> frames, size_t layer);

// The colours by the names that a style may give others to: "c0" to "c11" of heads, "paper", "ground", "cells", "edge", "query", "ink".
std::vector<SvgLook::Ink> head_inks();

Drawing head_panel(std::span<const HeadFrame> frames, size_t layer);  // one layer, with its name

}  // namespace heed
