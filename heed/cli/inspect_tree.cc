#include "heed/cli/inspect_tree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <vector>

namespace heed::cli {
namespace {

// A place between the dots of names. What lies at it and below.
struct Node {
  std::string name = {};
  const ModelPart* part = nullptr;
  std::vector<Node> below = {};
  ModelPart sum = {};             // of all below and itself
  int64_t first = -1, last = -1;  // of layers that are alike: what is below is one of them
};

void add(ModelPart& sum, const ModelPart& part) {
  sum.count += part.count;
  sum.bytes += part.bytes;
  sum.multiply_adds += part.multiply_adds;
  sum.activation_bytes += part.activation_bytes;
}

void insert(Node& root, const ModelPart& part) {
  Node* at = &root;
  add(root.sum, part);
  std::istringstream words(part.name);
  for (std::string word; std::getline(words, word, '.');) {
    auto found = std::find_if(at->below.begin(), at->below.end(), [&](const Node& node) { return node.name == word; });
    if (found == at->below.end()) found = at->below.insert(at->below.end(), Node{.name = word});
    at = &*found;
    add(at->sum, part);
  }
  at->part = &part;
}

bool is_number(const std::string& word) { return word.find_first_not_of("0123456789") == std::string::npos; }

bool same_figures(const ModelPart& a, const ModelPart& b) {
  return a.count == b.count && a.bytes == b.bytes && a.multiply_adds == b.multiply_adds && a.activation_bytes == b.activation_bytes;
}

// Whether two layers look alike in every row of the table.
bool alike(const Node& a, const Node& b) {
  if (!same_figures(a.sum, b.sum) || a.below.size() != b.below.size() || !a.part != !b.part) return false;
  if (a.part) {
    if (a.part->parameters.size() != b.part->parameters.size()) return false;
    for (size_t i = 0; i < a.part->parameters.size(); ++i) {
      const Parameter &x = a.part->parameters[i], &y = b.part->parameters[i];
      if (x.tensor.shape() != y.tensor.shape() || x.stored != y.stored) return false;
    }
  }
  for (size_t i = 0; i < a.below.size(); ++i)
    if (a.below[i].name != b.below[i].name || !alike(a.below[i], b.below[i])) return false;
  return true;
}

// Runs of layers that are alike become one node.
void fold(Node& node) {
  for (Node& each : node.below) fold(each);
  std::vector<Node> out;
  for (Node& each : node.below) {
    const bool layer = is_number(each.name);
    if (layer && !out.empty() && out.back().first >= 0 && std::stoll(each.name) == out.back().last + 1 &&
        alike(out.back().below[0], each)) {
      add(out.back().sum, each.sum);
      ++out.back().last;
      continue;
    }
    Node kept = std::move(each);
    if (layer) {
      const int64_t number = std::stoll(kept.name);
      Node run{.name = kept.name, .sum = kept.sum, .first = number, .last = number};
      run.below.push_back(std::move(kept));
      out.push_back(std::move(run));
    } else {
      out.push_back(std::move(kept));
    }
  }
  for (Node& each : out) {
    if (each.first < 0) continue;
    if (each.first == each.last) {  // a layer that is like no other stays as it is
      Node only = std::move(each.below[0]);
      each = std::move(only);
    } else {
      each.name = std::to_string(each.first) + ".." + std::to_string(each.last) + " x " + std::to_string(each.last - each.first + 1);
      each.below[0].name = "each";
    }
  }
  node.below = std::move(out);
}

// A node with nothing but one other below becomes one with it: "encoder.layer 0..11 x 12", "lm_head (tied)".
void join_chains(Node& node) {
  for (Node& each : node.below) {
    while (!each.part && each.below.size() == 1 && each.first < 0 && !is_number(each.below[0].name)) {
      Node only = std::move(each.below[0]);
      const bool path = only.first < 0 && !only.name.starts_with('(');
      only.name.insert(0, each.name + (path ? "." : " "));
      each = std::move(only);
    }
    join_chains(each);
  }
}

using Row = std::array<std::string, 8>;

std::string text_of(const Shape& shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

// As files hold it.
Shape stored_shape(const Parameter& parameter) {
  const Shape& shape = parameter.tensor.shape();
  return parameter.options.stored_transposed ? Shape{shape[1], shape[0]} : shape;
}

std::string percent(int64_t part, int64_t whole) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << (whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole)) << '%';
  return text.str();
}

Row row_of(const std::string& name, const ModelPart* part, const ModelPart& sum, const ModelPart& total) {
  std::string shapes, dtype;
  if (part)
    for (const Parameter& parameter : part->parameters) {
      shapes += (shapes.empty() ? "" : " + ") + text_of(stored_shape(parameter));
      if (dtype.find(name_of(parameter.stored)) == std::string::npos)
        dtype += (dtype.empty() ? "" : "+") + std::string(name_of(parameter.stored));
    }
  return {name,
          shapes,
          dtype,
          sum.count ? std::to_string(sum.count) : "",
          sum.count ? percent(sum.count, total.count) : "",
          sum.bytes ? readable_bytes(sum.bytes) : "",
          sum.multiply_adds ? readable_count(sum.multiply_adds) : "",
          sum.activation_bytes ? readable_bytes(sum.activation_bytes) : ""};
}

void add_rows(std::vector<Row>& rows, const Node& node, size_t depth, const ModelPart& total) {
  rows.push_back(row_of(std::string(2 * depth, ' ') + node.name, node.part, node.sum, total));
  for (const Node& each : node.below) add_rows(rows, each, depth + 1, total);
}

std::string scaled(int64_t number, double step, const std::vector<const char*>& units) {
  auto value = static_cast<double>(number);
  size_t unit = 0;
  for (; value >= step * 0.99995 && unit + 1 < units.size(); ++unit) value /= step;
  std::ostringstream text;
  text << std::fixed << std::setprecision(unit == 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0) << value;
  return text.str() + units[unit];
}

}  // namespace

std::string readable_count(int64_t number) { return scaled(number, 1000, {"", " k", " M", " G", " T", " P"}); }
std::string readable_bytes(int64_t bytes) { return scaled(bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB", " PiB"}); }

void print_tree(std::ostream& out, const Model& model, const ModelCost& cost, const TreeOptions& options) {
  out << model.architecture() << ": " << cost.total.count << " parameters, " << readable_bytes(cost.total.bytes) << "\n\n";
  Node root;
  for (const ModelPart& part : cost.parts) insert(root, part);
  if (!options.all) fold(root);
  join_chains(root);
  std::vector<Row> rows{{"module", "shape", "dtype", "parameters", "share", "bytes", "multiply-adds", "activations"}};
  for (const Node& each : root.below) add_rows(rows, each, 0, cost.total);
  rows.push_back(row_of("total", nullptr, cost.total, cost.total));
  std::array<size_t, 8> widths{};
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const Row& row : rows) {
    std::ostringstream line;
    for (size_t i = 0; i < row.size(); ++i)
      line << (i ? "  " : "") << (i < 3 ? std::left : std::right) << std::setw(static_cast<int>(widths[i])) << row[i];
    std::string text = line.str();
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << '\n';
  }
  out << "\nFor a batch of " << cost.size.batch << " with " << cost.size.tokens << " tokens";
  if (cost.size.target) out << " and " << cost.size.target << " in the target";
  out << " each: " << readable_count(cost.total.multiply_adds) << " multiply-adds (two floating point operations each)\n";
  if (cost.cache_bytes) out << "Key/value cache: " << readable_bytes(cost.cache_bytes) << " for each token of a text";
  if (cost.memory_bytes) out << ", " << readable_bytes(cost.memory_bytes) << " for each token of its source";
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
