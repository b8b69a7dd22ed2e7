#include "heed/cli/module_tree.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "heed/io/markup.h"

namespace heed::cli {
namespace {

// A module name component and its submodules.
struct Node {
  std::string name = {};
  const ModelPart* part = nullptr;
  std::vector<Node> children = {};
  ModelPart sum = {};             // over the node and its descendants
  int64_t first = -1, last = -1;  // a run of identical layers; its child is one of them
};

void insert(Node& root, const ModelPart& part) {
  Node* at = &root;
  root.sum.add(part);
  std::istringstream path(part.name);
  for (std::string component; std::getline(path, component, '.');) {
    auto found = std::find_if(at->children.begin(), at->children.end(), [&](const Node& node) { return node.name == component; });
    if (found == at->children.end()) found = at->children.insert(at->children.end(), Node{.name = component});
    at = &*found;
    at->sum.add(part);
  }
  at->part = &part;
}

bool is_number(const std::string& component) { return component.find_first_not_of("0123456789") == std::string::npos; }

// Whether two layers print the same rows, and have equal numbers also where the table rounds them.
bool same_rows(const Node& a, const Node& b, const std::vector<TreeColumn>& columns) {
  if (a.sum.count != b.sum.count || a.sum.multiply_adds != b.sum.multiply_adds || a.children.size() != b.children.size()) return false;
  for (const TreeColumn& column : columns)
    if (column.cell(a.part, a.sum) != column.cell(b.part, b.sum)) return false;
  for (size_t i = 0; i < a.children.size(); ++i)
    if (a.children[i].name != b.children[i].name || !same_rows(a.children[i], b.children[i], columns)) return false;
  return true;
}

// Merges runs of identical layers into one node.
void fold(Node& node, const std::vector<TreeColumn>& columns) {
  for (Node& each : node.children) fold(each, columns);
  std::vector<Node> out;
  for (Node& each : node.children) {
    const bool layer = is_number(each.name);
    if (layer && !out.empty() && out.back().first >= 0 && std::stoll(each.name) == out.back().last + 1 &&
        same_rows(out.back().children[0], each, columns)) {
      out.back().sum.add(each.sum);
      ++out.back().last;
      continue;
    }
    Node current = std::move(each);
    if (layer) {
      const int64_t number = std::stoll(current.name);
      Node run{.name = current.name, .sum = current.sum, .first = number, .last = number};
      run.children.push_back(std::move(current));
      out.push_back(std::move(run));
    } else {
      out.push_back(std::move(current));
    }
  }
  for (Node& each : out) {
    if (each.first < 0) continue;
    if (each.first == each.last) {  // a run of one layer stays unchanged
      Node only = std::move(each.children[0]);
      each = std::move(only);
    } else {
      each.name = std::to_string(each.first) + ".." + std::to_string(each.last) + " x " + std::to_string(each.last - each.first + 1);
      each.children[0].name = "each";
    }
  }
  node.children = std::move(out);
}

// Merges a node with its only child: "encoder.layer 0..11 x 12", "lm_head (tied)".
void join_chains(Node& node) {
  for (Node& each : node.children) {
    while (!each.part && each.children.size() == 1 && each.first < 0 && !is_number(each.children[0].name)) {
      Node only = std::move(each.children[0]);
      const bool path = only.first < 0 && !only.name.starts_with('(');
      only.name.insert(0, each.name + (path ? "." : " "));
      each = std::move(only);
    }
    join_chains(each);
  }
}

void add_rows(std::vector<std::vector<std::string>>& rows, const Node& node, size_t depth, const std::vector<TreeColumn>& columns) {
  rows.push_back({std::string(2 * depth, ' ') + node.name});
  for (const TreeColumn& column : columns) rows.back().push_back(column.cell(node.part, node.sum));
  for (const Node& each : node.children) add_rows(rows, each, depth + 1, columns);
}

std::string scaled(int64_t number, double base, const std::vector<const char*>& units) {
  auto value = static_cast<double>(number);
  size_t unit = 0;
  for (; value >= base * 0.99995 && unit + 1 < units.size(); ++unit) value /= base;
  std::ostringstream text;
  text << std::fixed << std::setprecision(unit == 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0) << value;
  return text.str() + units[unit];
}

}  // namespace

std::string readable_count(int64_t number) { return scaled(number, 1000, {"", " k", " M", " G", " T", " P"}); }
std::string readable_bytes(int64_t bytes) { return scaled(bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB", " PiB"}); }
std::string readable_share(int64_t part, int64_t whole) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << (whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole)) << '%';
  return text.str();
}

void print_rows(std::ostream& out, const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& left) {
  std::vector<size_t> widths(left.size());
  for (const std::vector<std::string>& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], letters_of(row[i]).size());
  for (const std::vector<std::string>& row : rows) {
    std::string text;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string spaces(widths[i] - letters_of(row[i]).size(), ' ');
      text += (i ? "  " : "") + (left[i] ? row[i] + spaces : spaces + row[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << '\n';
  }
}

void print_modules(std::ostream& out, const ModelCost& cost, const std::vector<TreeColumn>& columns, bool all) {
  Node root;
  for (const ModelPart& part : cost.parts) insert(root, part);
  if (!all) fold(root, columns);
  join_chains(root);
  std::vector<std::vector<std::string>> rows{{"module"}};
  std::vector<bool> left{true};
  for (const TreeColumn& column : columns) rows[0].push_back(column.title), left.push_back(column.left_aligned);
  for (const Node& each : root.children) add_rows(rows, each, 0, columns);
  rows.push_back({"total"});
  for (const TreeColumn& column : columns) rows.back().push_back(column.cell(nullptr, cost.total));
  print_rows(out, rows, left);
}

}  // namespace heed::cli
