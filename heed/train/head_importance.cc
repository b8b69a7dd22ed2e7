#include "heed/train/head_importance.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/tap.h"
#include "heed/core/autograd.h"
#include "heed/core/with_grad.h"

namespace heed {

HeadNumbers head_numbers(const std::function<void()>& pass) {
  const AttentionTap tap(AttentionTap::Choice{.calls = {-1}});
  pass();
  HeadNumbers out;
  for (const AttentionTap::Shapes& each : tap.shapes()) out.emplace_back(static_cast<size_t>(each.q[1]));
  check(!out.empty(), "heads: the network has no softmax attention, expected heads");
  return out;
}

HeadNumbers importance_by_gradient(const HeadNumbers& heads, int64_t batches, const std::function<Tensor(int64_t batch)>& loss) {
  check(batches >= 1, "heads: ", batches, " batches, expected 1 or more");
  const WithGrad with_grad;
  HeadNumbers out = heads;
  for (int64_t batch = 0; batch < batches; ++batch) {
    AttentionEdit::Changes changes{.period = std::ssize(heads)};
    for (size_t call = 0; call < heads.size(); ++call) {
      Tensor gate = Tensor::from(std::vector<float>(heads[call].size(), 1.0f), {std::ssize(heads[call])}, default_device());
      gate.require_grad();
      changes.gates[static_cast<int64_t>(call)] = gate;
    }
    const std::map<int64_t, Tensor> gates = changes.gates;
    Tensor value;
    {
      const AttentionEdit edit(std::move(changes));
      value = loss(batch);
    }
    backward(value);
    for (size_t call = 0; call < heads.size(); ++call) {
      const std::vector<float> slope = gates.at(static_cast<int64_t>(call)).grad().to_vector<float>();
      for (size_t head = 0; head < slope.size(); ++head)
        out[call][head] += std::abs(static_cast<double>(slope[head])) / static_cast<double>(batches);
    }
  }
  return out;
}

HeadNumbers importance_by_leaving_out(const HeadNumbers& heads, const std::function<double()>& score) {
  const double all = score();
  HeadNumbers out = heads;
  for (size_t call = 0; call < heads.size(); ++call)
    for (size_t head = 0; head < heads[call].size(); ++head) {
      const AttentionEdit edit({.off = {{static_cast<int64_t>(call), static_cast<int64_t>(head)}}, .period = std::ssize(heads)});
      out[call][head] = all - score();
    }
  return out;
}

std::vector<HeadPlace> by_importance(const HeadNumbers& importance) {
  std::vector<HeadPlace> out;
  for (size_t call = 0; call < importance.size(); ++call)
    for (size_t head = 0; head < importance[call].size(); ++head) out.emplace_back(call, head);
  const auto of = [&](const HeadPlace& place) { return importance[static_cast<size_t>(place.first)][static_cast<size_t>(place.second)]; };
  std::stable_sort(out.begin(), out.end(), [&](const HeadPlace& a, const HeadPlace& b) { return of(a) < of(b); });
  return out;
}

std::vector<double> scores_without(const HeadNumbers& heads, const std::vector<HeadPlace>& order, const std::vector<int64_t>& counts,
                                   const std::function<double()>& score) {
  std::vector<double> out;
  for (const int64_t count : counts) {
    const AttentionEdit edit({.off = {order.begin(), order.begin() + count}, .period = std::ssize(heads)});
    out.push_back(score());
  }
  return out;
}

}  // namespace heed
