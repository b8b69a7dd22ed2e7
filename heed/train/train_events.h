// Event file contents other than curves: histograms of weights and gradients, training samples, attention maps.
#pragma once

#include "heed/train/task.h"

namespace heed {

void write_histograms(EventFile& events, const std::vector<Parameter>& parameters, int64_t step);
// "samples": a grid of images with their classes, if the task provides them.
void write_first_samples(EventFile& events, const Task& task, int64_t step);
// "attention/layer_0", ...: head mean and every head on the tracked sample, if the model returns attention maps. For images the attention
// of the class token, or the mean over patches; for text a row per query for the first tokens.
void write_attention(EventFile& events, const Task& task, int64_t step);

}  // namespace heed
