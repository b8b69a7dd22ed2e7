// Where heads with Gaussian positions stand at the beginning of a run and after every epoch: heads.jsonl in its folder.
#pragma once

#include <vector>

#include "heed/models/gaussian_heads.h"
#include "heed/train/run_folder.h"

namespace heed {

struct HeadFrame {
  int64_t epoch = 0, step = 0;  // 0: before the first step
  GaussianHeads heads = {};
};

// One line: docs/lab/heads.md says what is in it. The same heads are the same bytes.
std::string head_line(const HeadFrame& frame);

// Adds a line to heads.jsonl, and to the event file a drawing a layer, "heads/layer_0", ..., with the way that every head has gone so
// far. Nothing where the model has no Gaussian positions.
void record_heads(RunFolder& run, const Model& model, int64_t epoch, int64_t step);

// All of them, in their order; none where the run has no heads.jsonl. A line that is none is a FileError that names it.
std::vector<HeadFrame> read_heads(const Path& run);

}  // namespace heed
