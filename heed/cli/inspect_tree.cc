#include "heed/cli/inspect_tree.h"

#include <sstream>

namespace heed::cli {
namespace {

std::string text_of(const Shape& shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

// The shape in the file.
Shape stored_shape(const Parameter& parameter) {
  const Shape& shape = parameter.tensor.shape();
  return parameter.options.stored_transposed ? Shape{shape[1], shape[0]} : shape;
}

std::string shapes_of(const ModelPart* part) {
  std::string out;
  if (part)
    for (const Parameter& each : part->parameters) out += (out.empty() ? "" : " + ") + text_of(stored_shape(each));
  return out;
}

std::string dtypes_of(const ModelPart* part) {
  std::string out;
  if (part)
    for (const Parameter& each : part->parameters)
      if (out.find(name_of(each.stored)) == std::string::npos) out += (out.empty() ? "" : "+") + std::string(name_of(each.stored));
  return out;
}

}  // namespace

void print_tree(std::ostream& out, const Model& model, const ModelCost& cost, const TreeOptions& options) {
  out << model.architecture() << ": " << cost.total.count << " parameters, " << readable_bytes(cost.total.bytes) << "\n\n";
  const auto unless_zero = [](int64_t number, const std::string& text) { return number ? text : std::string(); };
  using Part = ModelPart;
  print_modules(
      out, cost,
      {{"shape", [](const Part* part, const Part&) { return shapes_of(part); }, true},
       {"dtype", [](const Part* part, const Part&) { return dtypes_of(part); }, true},
       {"parameters", [&](const Part*, const Part& sum) { return unless_zero(sum.count, std::to_string(sum.count)); }},
       {"share", [&](const Part*, const Part& sum) { return unless_zero(sum.count, readable_share(sum.count, cost.total.count)); }},
       {"bytes", [&](const Part*, const Part& sum) { return unless_zero(sum.bytes, readable_bytes(sum.bytes)); }},
       {"multiply-adds", [&](const Part*, const Part& sum) { return unless_zero(sum.multiply_adds, readable_count(sum.multiply_adds)); }},
       {"activations",
        [&](const Part*, const Part& sum) { return unless_zero(sum.activation_bytes, readable_bytes(sum.activation_bytes)); }}},
      options.all);
  out << "\nFor a batch of " << cost.size.batch << " with " << cost.size.tokens << " tokens each";
  if (cost.size.target) out << " and " << cost.size.target << " in the target";
  out << ": " << readable_count(cost.total.multiply_adds) << " multiply-adds (two floating point operations each)\n";
  if (cost.cache_bytes) out << "Key/value cache: " << readable_bytes(cost.cache_bytes) << " per token of a text";
  if (cost.memory_bytes) out << ", " << readable_bytes(cost.memory_bytes) << " per token of its source";
  if (cost.cache_bytes) out << '\n';
}

Json tree_json(const Model& model, const ModelCost& cost) {
  const auto figures = [](const ModelPart& part) {
    return Json{{"parameters", part.count},
                {"bytes", part.bytes},
                {"multiply_adds", part.multiply_adds},
                {"activation_bytes", part.activation_bytes}};
  };
  Json modules = Json::array();
  for (const ModelPart& part : cost.parts) {
    Json module = figures(part);
    module["name"] = part.name;
    module["tensors"] = Json::array();
    for (const Parameter& each : part.parameters) {
      const Shape shape = stored_shape(each);
      module["tensors"].push_back(
          {{"name", each.name}, {"shape", std::vector<int64_t>(shape.begin(), shape.end())}, {"dtype", name_of(each.stored)}});
    }
    modules.push_back(std::move(module));
  }
  Json out = figures(cost.total);
  out["architecture"] = model.architecture();
  out["size"] = {{"batch", cost.size.batch}, {"tokens", cost.size.tokens}, {"target", cost.size.target}};
  out["cache_bytes_per_token"] = cost.cache_bytes;
  out["memory_bytes_per_source_token"] = cost.memory_bytes;
  out["modules"] = std::move(modules);
  return out;
}

}  // namespace heed::cli
