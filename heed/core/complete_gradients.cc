#include "heed/core/complete_gradients.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "heed/core/autograd_graph.h"

namespace heed {

CompleteGradients::CompleteGradients(const Tensor& root, const Tensors& leaves, std::function<void(size_t leaf)> is_complete)
    : is_complete_(std::move(is_complete)) {
  constexpr uint64_t none = std::numeric_limits<uint64_t>::max();
  std::map<const Slot*, uint64_t> lowest;  // of leaves
  uint64_t lowest_of_any = none;
  std::set<const Node*> seen;
  std::vector<const Node*> open;
  const auto visit = [&](const std::shared_ptr<Node>& node) {
    if (node && seen.insert(node.get()).second) open.push_back(node.get());
  };
  if (root.needs_grad()) visit(History::slot(root)->node);
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    if (node->reaches_any_leaf) lowest_of_any = std::min(lowest_of_any, node->sequence);
    for (const std::shared_ptr<Slot>& input : node->inputs) {
      if (!input) continue;
      visit(input->node);
      if (input->node) continue;
      uint64_t& number = lowest.try_emplace(input.get(), none).first->second;
      number = std::min(number, node->sequence);
    }
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto found = lowest.find(History::slot(leaves[i]).get());
    waiting_.emplace_back(std::min(lowest_of_any, found == lowest.end() ? none : found->second), i);
  }
  std::sort(waiting_.begin(), waiting_.end());
}

void CompleteGradients::before(uint64_t sequence) {
  while (!waiting_.empty() && waiting_.back().first > sequence) {
    const size_t leaf = waiting_.back().second;
    waiting_.pop_back();
    is_complete_(leaf);
  }
}

void CompleteGradients::finish() {
  for (; !waiting_.empty(); waiting_.pop_back()) is_complete_(waiting_.back().second);
}

}  // namespace heed
