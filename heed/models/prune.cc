#include "heed/models/prune.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "heed/attention/tap.h"
#include "heed/core/autograd.h"
#include "heed/core/copy.h"
#include "heed/core/dry_run.h"
#include "heed/models/architecture.h"
#include "heed/models/cost.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

// The layer that a parameter belongs to: the first number in its name, "encoder.layer.3.attention.output.weight"; -1: none
int64_t layer_in(const std::string& name) {
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    int64_t number = -1;
    const auto [at, error] = std::from_chars(name.data() + begin, name.data() + end, number);
    if (error == std::errc() && at == name.data() + end) return number;
    begin = end + 1;
  }
  return -1;
}

// The heads of a layer that are pruned already, as the config counts them.
std::set<int64_t> pruned_before(const Json& config, int64_t layer) {
  const Json own = config.value("heed", Json::object());
  const Json all = own.value("pruned_heads", Json::object());
  const auto gone = all.value(std::to_string(layer), std::vector<int64_t>());
  return {gone.begin(), gone.end()};
}

// Which slices of an axis of heads are kept. The axis consists of `parts` parts (queries, keys and values of a fused projection), each with
// `numbers` numbers for every head.
Tensor kept_slices(const Tensor& x, int axis, const std::vector<int64_t>& heads, int64_t all, int64_t parts) {
  const int64_t numbers = x.size(axis) / (parts * all);
  std::vector<int64_t> rows;
  for (int64_t part = 0; part < parts; ++part)
    for (const int64_t head : heads)
      for (int64_t i = 0; i < numbers; ++i) rows.push_back((part * all + head) * numbers + i);
  return index_select(x, axis, Tensor::from(rows, {std::ssize(rows)}, x.device()));
}

}  // namespace

std::vector<LayerHeads> prunable_heads(const Model& model) {
  const Family& family = model.family();
  check<FileError>(!family.encoder_decoder && !(family.pixels && family.tokens), model.architecture(),
                   ": heads are pruned in models with one stack of layers, expected no encoder-decoder and no pair of encoders");
  const DryRun dry;
  const NoGrad no_grad;
  const Model copy = rebuild(model, Weights::trainable);
  const AttentionTap tap(AttentionTap::Choice{.calls = {-1}});
  run_example(copy, resolve_input_size(copy, {}), Purpose::inference);
  check<FileError>(tap.calls() > 0, model.architecture(), ": has no softmax attention, expected heads with maps");
  // A pooling by attention comes after the layers; its heads stay.
  const int64_t layers = Config(model.config(), "config.json").size(family.keys.layers.at(0), tap.calls(), 0);
  std::vector<LayerHeads> out;
  for (const AttentionTap::Shapes& each : tap.shapes()) {
    if (std::ssize(out) == layers) break;
    const bool shared = each.k[1] != each.q[1] && !(each.k[1] == 1 && each.k[3] == 1);  // without content, keys are placeholders
    check<FileError>(!shared, model.architecture(), ": ", each.q[1], " heads share ", each.k[1], " keys, expected keys of their own");
    out.push_back({each.q[1], each.q[3]});
  }
  return out;
}

Model without_heads(const Model& model, const std::map<int64_t, std::vector<int64_t>>& pruned) {
  const NoGrad no_grad;
  const std::vector<LayerHeads> layers = prunable_heads(model);
  Json config = model.config();
  std::map<int64_t, std::vector<int64_t>> kept;
  for (const auto& [layer, heads] : pruned) {
    check<UsageError>(layer >= 0 && layer < std::ssize(layers), "prune: layer ", layer, ", the model has ", layers.size());
    const int64_t all = layers[static_cast<size_t>(layer)].heads;
    const std::set<int64_t> now(heads.begin(), heads.end());
    check<UsageError>(now.empty() || (*now.begin() >= 0 && *now.rbegin() < all), "prune: heads of layer ", layer, ", expected 0 to ",
                      all - 1);
    check<UsageError>(std::ssize(now) < all, "prune: all ", all, " heads of layer ", layer, ", expected one or more that stay");
    const std::set<int64_t> before = pruned_before(config, layer);
    std::set<int64_t> gone = before;
    for (int64_t head = 0, counted = 0; head < all; ++counted) {
      if (before.contains(counted)) continue;
      if (now.contains(head))
        gone.insert(counted);
      else
        kept[layer].push_back(head);
      ++head;
    }
    if (!gone.empty()) config["heed"]["pruned_heads"][std::to_string(layer)] = gone;
  }
  Model out = make_model(config, {.architecture = model.architecture()});
  for (const Parameter& each : out.params().all()) {
    const std::vector<Parameter>& all = model.params().all();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Parameter& other) { return other.name == each.name; });
    check(found != all.end() && !found->packed, "prune: ", each.name, " is not in the model, expected one loaded for training");
    Tensor value = found->tensor.detach();
    const int64_t layer = layer_in(each.name);
    for (int axis = 0; axis < value.rank(); ++axis) {
      if (value.size(axis) == each.tensor.size(axis)) continue;
      check(kept.contains(layer), "prune: ", each.name, " depends on the number of heads, expected it to belong to one layer");
      const LayerHeads& heads = layers[static_cast<size_t>(layer)];
      const int64_t numbers = value.size(axis) / heads.heads;
      const bool fused = axis == 0 && heads.width > 1 && numbers == 3 * heads.width;
      value = kept_slices(value, axis, kept.at(layer), heads.heads, fused ? 3 : 1);
    }
    check(value.shape() == each.tensor.shape(), "prune: ", each.name, " of shape ", value.shape(), ", expected ", each.tensor.shape());
    copy_into(value, each.tensor);
  }
  return out;
}

}  // namespace heed
