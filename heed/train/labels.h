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

// The order in which samples are picked to be shown: one of each class in turn, then a second of each, and so on. Of more classes than
// samples are tried, some from all over the list.
std::vector<int64_t> classes_in_turn(std::span<const int64_t> labels);

// At most 8 right and 8 wrong ones, the first that there are in this order.
std::vector<Sample> some_right_and_wrong(std::span<const int64_t> order, const std::function<Sample(int64_t i)>& look_at);

}  // namespace heed
