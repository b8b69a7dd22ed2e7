// How much every head of a model matters on data: by the gradient of the loss with respect to a factor on its output, and by leaving it out
// (Michel, Levy and Neubig 2019).
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "heed/attention/edit.h"
#include "heed/train/task.h"

namespace heed {

// A number for every head: by attention call of the network, from 0, and by head. In encoders a call is a layer.
using HeadNumbers = std::vector<std::vector<double>>;
using HeadPlace = std::pair<int64_t, int64_t>;  // call, head

// As many zeros as the network has heads. pass: runs the network once
HeadNumbers head_numbers(const std::function<void()>& pass);

// Mean over batches of |d loss / d factor|. loss: of a batch, with gradients
HeadNumbers importance_by_gradient(const HeadNumbers& heads, int64_t batches, const std::function<Tensor(int64_t batch)>& loss);

// The score with all heads minus the score without each. score: may run the network several times
HeadNumbers importance_by_leaving_out(const HeadNumbers& heads, const std::function<double()>& score);

// All heads, the least important first.
std::vector<HeadPlace> by_importance(const HeadNumbers& importance);

// The score without the first n heads of an order, for every n of a list.
std::vector<double> scores_without(const HeadNumbers& heads, const std::vector<HeadPlace>& order, const std::vector<int64_t>& counts,
                                   const std::function<double()>& score);

}  // namespace heed
