// What the event file of a run gets beside its curves: histograms of weights and gradients, samples, and where heads look.
#pragma once

#include "heed/train/task.h"

namespace heed {

void write_histograms(EventFile& events, const std::vector<Parameter>& parameters, int64_t step);
// "samples": a sheet of pictures with their classes, where the task has some to show.
void write_first_samples(EventFile& events, const Task& task, int64_t step);
// "attention/layer_0", ...: the mean of the heads and each of them on the sample that is followed, where the model gives maps. Of
// pictures it is what the class token sees, or all patches on average; of texts a row for each query, of the first tokens.
void write_attention(EventFile& events, const Task& task, int64_t step);

}  // namespace heed
