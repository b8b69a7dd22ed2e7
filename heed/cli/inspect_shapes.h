// heed inspect --shapes: every intermediate of a model with its shape and what it comes from.
#pragma once

#include <ostream>

#include "heed/models/shape_trace.h"

namespace heed::cli {

// A table. all: also layers and steps that repeat the one before; otherwise they share a line: "layer.0..11", "hidden x 5"
void print_shapes(std::ostream& out, const std::vector<ShapeRecord>& records, bool all);

}  // namespace heed::cli
