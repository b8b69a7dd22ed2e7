// Scores of an evaluation as text.
#pragma once

#include "heed/train/task.h"

namespace heed::cli {

std::string fixed_number(double value, int digits);  // 0.5, 3 -> "0.500"
void print_metrics(const Metrics& figures);
// detail: Evaluation::detail of a classifier. At most 200 classes
void print_classes(const Json& detail);
// The confusion matrix, or of many classes the most frequent mistakes.
void print_confusion(const Json& detail);

}  // namespace heed::cli
