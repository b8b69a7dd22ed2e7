// Helpers shared by tasks with labels: class names in config.json, the initial model, accuracy, sample selection.
#pragma once

#include "heed/models/architecture.h"
#include "heed/train/tasks.h"

namespace heed {

void set_labels(Json& config, const std::vector<std::string>& classes);  // writes id2label and label2id

// Changes the architecture in config.json to that of the same model type for a task; a UsageError if heed has none. from: folder of
// config.json
void set_task(Json& config, ModelTask task, const std::string& from);
Json config_from(const std::string& from, ModelTask task);  // reads config.json and sets the task

// A new model, or the one in `from`, with a new head if its own is for another task. A loaded model accepts only dropout and
// stochastic_depth; other model settings are UsageErrors.
std::shared_ptr<Model> model_for(const JobOptions& chosen, const Json& config);

StepMetric accuracy_of(const Tensor& logits, const Tensor& labels);  // logits: (B, C), labels: (B)

// Sets guess, score and right of a sample. probabilities: (C)
void score_sample(Sample& sample, const std::vector<float>& probabilities, const std::vector<std::string>& classes);

// Order for picking samples to show: one of each class, then a second of each, and so on. If there are more classes than samples are tried,
// classes are strided.
std::vector<int64_t> class_round_robin(std::span<const int64_t> labels);

// The first 8 right and 8 wrong samples in this order.
std::vector<Sample> pick_right_and_wrong(std::span<const int64_t> order, const std::function<Sample(int64_t i)>& explain);

}  // namespace heed
