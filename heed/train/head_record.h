// heads.jsonl of a run: centres and spreads of heads with Gaussian positions, before training and after every epoch.
#pragma once

#include <vector>

#include "heed/models/gaussian_heads.h"
#include "heed/train/run_folder.h"

namespace heed {

struct HeadFrame {
  int64_t epoch = 0, step = 0;  // 0: before the first step
  GaussianHeads heads = {};
};

// One line of heads.jsonl, described in docs/lab/heads.md. Deterministic.
std::string head_line(const HeadFrame& frame);

// Appends to heads.jsonl, and adds a drawing of each layer to the event file as "heads/layer_0", ... with the path of every head so far.
// Does nothing if the model has no Gaussian positions.
void record_heads(RunFolder& run, const Model& model, int64_t epoch, int64_t step);

// All frames in order; empty if the run has no heads.jsonl. An invalid line is a FileError that names it.
std::vector<HeadFrame> read_heads(const Path& run);

}  // namespace heed
