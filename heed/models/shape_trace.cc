#include "heed/models/shape_trace.h"

#include <algorithm>
#include <sstream>

#include "heed/core/autograd.h"
#include "heed/core/dry_run.h"

namespace heed {
namespace {

constexpr std::string_view kAttend = "(attend)";  // how multi-head attention names the step between its projections

std::string written(const Shape& shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

// Modules with a weight pass the input first; embeddings pass rows of their table, norms what they normalize.
std::string origin_of(const ModuleCall& call, const Params& params) {
  const auto weight =
      std::find_if(params.all().begin(), params.all().end(), [&](const Parameter& each) { return each.name == call.module + ".weight"; });
  std::string out = call.read.empty() ? "" : written(call.read[0]);
  if (call.read.size() > 1) return out + ", weight " + written(call.read[1]);
  if (weight == params.all().end()) return out;
  const Shape& shape = weight->tensor.shape();
  const bool table = shape.rank() == 2 && !call.read.empty() && call.read[0] == call.output;
  return table ? "rows of " + written(shape) : shape.rank() == 1 ? out + ", normalized" : out + ", weight " + written(shape);
}

// q: (B, H, N, D), k: (B, G, M, D), v: (B, G, M, E), z: (B, H, N, E). seen: of attention(), which computes a map; null: another kind
void add_attention(std::vector<ShapeRecord>& out, const ModuleCall& call, const AttentionTap::Shapes* seen) {
  const std::string prefix = call.module.substr(0, call.module.size() - kAttend.size());
  const auto add = [&](const char* name, const Shape& shape, const std::string& from) {
    out.push_back({prefix + name, shape, call.dtype, from});
  };
  const auto heads = [](const Shape& shape) { return std::to_string(shape[1]) + (shape[1] == 1 ? " head" : " heads"); };
  add("q", call.read[0], "queries of " + heads(call.read[0]));
  add("k", call.read[1], "keys of " + heads(call.read[1]));
  add("v", call.read[2], "values of " + heads(call.read[2]));
  if (seen) add("map", {seen->q[0], seen->q[1], seen->q[2], seen->k[2]}, "q " + written(seen->q) + ", k " + written(seen->k));
  add("z", call.output, seen ? "map, v" : "q, k, v, without a map");
  const Shape& z = call.output;
  add("joined", {z[0], z[2], z[1] * z[3]}, "z, heads concatenated");
}

bool is_map(const std::string& output) { return output.find("attentions.") != std::string::npos; }

}  // namespace

std::vector<ShapeRecord> ShapeTrace::records(const Model& model, const TensorMap& inputs, const TensorMap& outputs) const {
  std::vector<ShapeRecord> out;
  for (const auto& [name, tensor] : inputs) out.push_back({name, tensor.shape(), tensor.dtype(), "input"});
  const auto attends = [](const ModuleCall& call) { return call.module.ends_with(kAttend) && call.read.size() == 3; };
  const std::vector<ModuleCall>& calls = calls_.list();
  // Linear and channel attention compute no map and call no attention(); a model has one kind of attention.
  const bool maps = std::count_if(calls.begin(), calls.end(), attends) == tap_.calls();
  size_t attention = 0;
  for (const ModuleCall& call : calls)
    if (attends(call))
      add_attention(out, call, maps ? &tap_.shapes()[attention++] : nullptr);
    else
      out.push_back({call.module, call.output, call.dtype, origin_of(call, model.params())});
  std::vector<ShapeRecord> results;
  for (const auto& [name, tensor] : outputs)
    if (!is_map(name)) results.push_back({name, tensor.shape(), tensor.dtype(), "output"});
  // hidden_states.2 before hidden_states.10
  std::sort(results.begin(), results.end(), [](const ShapeRecord& a, const ShapeRecord& b) {
    const size_t dot = a.name.rfind('.') + 1;
    const bool numbers = dot > 0 && a.name.substr(0, dot) == b.name.substr(0, b.name.rfind('.') + 1);
    return numbers && a.name.size() != b.name.size() ? a.name.size() < b.name.size() : a.name < b.name;
  });
  out.insert(out.end(), results.begin(), results.end());
  return out;
}

std::vector<ShapeRecord> shapes_of_example(const Model& model, const InputSize& size) {
  return within_limits([&] {
    const InputSize resolved = resolve_input_size(model, size);
    const DryRun dry;
    const NoGrad no_grad;
    const Model copy = rebuild(model, Weights::trainable);
    const TensorMap inputs = example_inputs(copy, resolved, false);
    const ShapeTrace trace;
    const TensorMap outputs = copy(inputs, {.hidden_states = true});
    return trace.records(copy, inputs, outputs);
  });
}

Json shapes_json(const std::vector<ShapeRecord>& records) {
  Json out = Json::array();
  for (const ShapeRecord& each : records)
    out.push_back({{"name", each.name},
                   {"shape", std::vector<int64_t>(each.shape.begin(), each.shape.end())},
                   {"dtype", name_of(each.dtype)},
                   {"from", each.from}});
  return out;
}

}  // namespace heed
