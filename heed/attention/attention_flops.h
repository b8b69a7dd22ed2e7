// What one attention has to multiply, of the pairs of tokens that its masks let through: for counting work (core/work_count.h).
#pragma once

#include "heed/attention/work.h"

namespace heed {

int64_t visible_pairs(const AttentionPlan& plan);                           // in all heads and items
int64_t forward_multiply_adds(const AttentionPlan& plan);                   // scores and weighted sums
int64_t backward_multiply_adds(const AttentionPlan& plan, bool soft_rows);  // scores again; without soft rows only values get gradients

}  // namespace heed
