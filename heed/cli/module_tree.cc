#include "heed/cli/module_tree.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

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

void insert(Node& root, const ModelPart& part) {
  Node* at = &root;
  root.sum.add(part);
  std::istringstream words(part.name);
  for (std::string word; std::getline(words, word, '.');) {
    auto found = std::find_if(at->below.begin(), at->below.end(), [&](const Node& node) { return node.name == word; });
    if (found == at->below.end()) found = at->below.insert(at->below.end(), Node{.name = word});
    at = &*found;
    at->sum.add(part);
  }
  at->part = &part;
}

bool is_number(const std::string& word) { return word.find_first_not_of("0123456789") == std::string::npos; }

// Whether two layers look alike in every row of the table, and their numbers are the same where the table rounds them.
bool alike(const Node& a, const Node& b, const std::vector<TreeColumn>& columns) {
  if (a.sum.count != b.sum.count || a.sum.multiply_adds != b.sum.multiply_adds || a.below.size() != b.below.size()) return false;
  for (const TreeColumn& column : columns)
    if (column.cell(a.part, a.sum) != column.cell(b.part, b.sum)) return false;
  for (size_t i = 0; i < a.below.size(); ++i)
    if (a.below[i].name != b.below[i].name || !alike(a.below[i], b.below[i], columns)) return false;
  return true;
}

// Runs of layers that are alike become one node.
void fold(Node& node, const std::vector<TreeColumn>& columns) {
  for (Node& each : node.below) fold(each, columns);
  std::vector<Node> out;
  for (Node& each : node.below) {
    const bool layer = is_number(each.name);
    if (layer && !out.empty() && out.back().first >= 0 && std::stoll(each.name) == out.back().last + 1 &&
        alike(out.back().below[0], each, columns)) {
      out.back().sum.add(each.sum);
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

void add_rows(std::vector<std::vector<std::string>>& rows, const Node& node, size_t depth, const std::vector<TreeColumn>& columns) {
  rows.push_back({std::string(2 * depth, ' ') + node.name});
  for (const TreeColumn& column : columns) rows.back().push_back(column.cell(node.part, node.sum));
  for (const Node& each : node.below) add_rows(rows, each, depth + 1, columns);
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
std::string readable_share(int64_t part, int64_t whole) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << (whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole)) << '%';
  return text.str();
}

void print_rows(std::ostream& out, const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& left) {
  std::vector<size_t> widths(left.size());
  for (const std::vector<std::string>& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const std::vector<std::string>& row : rows) {
    std::ostringstream line;
    for (size_t i = 0; i < row.size(); ++i)
      line << (i ? "  " : "") << (left[i] ? std::left : std::right) << std::setw(static_cast<int>(widths[i])) << row[i];
    std::string text = line.str();
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
  for (const TreeColumn& column : columns) rows[0].push_back(column.title), left.push_back(column.words);
  for (const Node& each : root.below) add_rows(rows, each, 0, columns);
  rows.push_back({"total"});
  for (const TreeColumn& column : columns) rows.back().push_back(column.cell(nullptr, cost.total));
  print_rows(out, rows, left);
}

}  // namespace heed::cli
