// What tasks with labels share: the names of classes in config.json, the model to begin with, what was right.
#pragma once

#include "heed/train/tasks.h"

namespace heed {

void set_labels(Json& config, const std::vector<std::string>& classes);  // num_labels' successors id2label and label2id

// From scratch, or from the folder that was chosen; parts with one of `new_parts` in their names may begin anew. A model from a folder
// is as it was made: only its dropout and stochastic depth may be chosen, and other choices are UsageErrors.
std::shared_ptr<Model> model_for(const Chosen& chosen, const Json& config, const std::vector<std::string>& new_parts);

Share right_of(const Tensor& logits, const Tensor& labels);  // logits: (B, C), labels: (B)

// probabilities: (C) -> the sample's guess, its score and whether it is right
void judge(Sample& sample, const std::vector<float>& probabilities, const std::vector<std::string>& classes);

// At most 8 of both kinds, the first that there are of `count` samples.
std::vector<Sample> some_right_and_wrong(int64_t count, const std::function<Sample(int64_t i)>& look_at);

}  // namespace heed
