// Costs per part of a model. Identical layers fold into one row, which opens to show the parts of one layer.
#include <algorithm>
#include <array>

#include "heed/io/markup.h"
#include "heed/train/report_draw.h"

namespace heed {
namespace {

struct CostKind {
  const char *key, *unit;
};
constexpr std::array<CostKind, 3> kCosts{{{"parameters", ""}, {"multiply_adds", ""}, {"bytes", "B"}}};
using Costs = std::array<double, kCosts.size()>;

void add_costs(Costs& sum, const Costs& more) {
  for (size_t k = 0; k < sum.size(); ++k) sum[k] += more[k];
}

struct CostPart {
  std::string name = {};
  Costs costs = {};
  bool operator==(const CostPart&) const = default;
};

// One part, or layers first to last with identical parts.
struct CostBlock {
  std::string name = {};
  int64_t first = -1, last = -1;     // -1: a single part
  std::vector<CostPart> parts = {};  // of one layer
  int64_t layers() const { return last - first + 1; }
  Costs each() const {
    Costs sum{};
    for (const CostPart& part : parts) add_costs(sum, part.costs);
    return sum;
  }
  Costs all() const {
    Costs sum = each();
    for (double& cost : sum) cost *= static_cast<double>(layers());
    return sum;
  }
};

// "vit.encoder.layer.3.output.dense" -> "vit.encoder.layer", 3, "output.dense"; -1: no number in it
struct LayerName {
  std::string before = {}, after = {};
  int64_t number = -1;
};
LayerName layer_name(const std::string& name) {
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string word = name.substr(begin, end - begin);
    if (begin > 0 && end < name.size() && !word.empty() && word.size() < 7 && word.find_first_not_of("0123456789") == word.npos)
      return {.before = name.substr(0, begin - 1), .after = name.substr(end + 1), .number = std::stoll(word)};
    begin = end + 1;
  }
  return {};
}

std::vector<CostBlock> fold_layers(const Json& layers) {
  std::vector<CostBlock> single;
  for (const Json& layer : layers) {
    CostPart part{.name = text_in(layer, "name")};
    for (size_t k = 0; k < kCosts.size(); ++k) part.costs[k] = number_in(layer, kCosts[k].key);
    const LayerName name = layer_name(part.name);
    if (name.number < 0) {
      single.push_back({.name = part.name, .parts = {part}});
      continue;
    }
    part.name = name.after;
    if (single.empty() || single.back().name != name.before || single.back().first != name.number)
      single.push_back({.name = name.before, .first = name.number, .last = name.number});
    single.back().parts.push_back(part);
  }
  std::vector<CostBlock> out;
  for (CostBlock& block : single) {
    const bool joins = !out.empty() && block.first >= 0 && out.back().name == block.name && out.back().last + 1 == block.first &&
                       out.back().parts == block.parts;
    if (joins)
      out.back().last = block.last;
    else
      out.push_back(std::move(block));
  }
  return out;
}

std::string cost_text(double cost, const CostKind& kind) {
  if (!(cost > 0)) return "–";
  return count_text(cost) + (cost < 10000 && *kind.unit != 0 ? " " : "") + kind.unit;
}

std::string cost_cells(const Costs& costs, const Costs& most) {
  std::string out;
  for (size_t k = 0; k < costs.size(); ++k) {
    const double share = most[k] > 0 ? costs[k] / most[k] : 0;
    out += "<td class=\"number\"><span class=\"value\">" + cost_text(costs[k], kCosts[k]) +
           "</span><span class=\"bar\"><i style=\"width:" + fixed(100 * std::clamp(share, 0.0, 1.0), 1) + "%\"></i></span></td>";
  }
  return out;
}

// Allows line breaks after each dot.
std::string breakable(const std::string& name) {
  std::string out;
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size() - 1) + 1;
    out += escape_markup(name.substr(begin, end - begin)) + (end < name.size() ? "<wbr>" : "");
    begin = end;
  }
  return out;
}

// The rows of a block; parts of a layer are shown when its details are open.
std::string block_html(const CostBlock& block, const Costs& most) {
  const auto row = [&](const std::string& kind, const std::string& name, const Costs& costs) {
    return "<tr" + (kind.empty() ? "" : " class=\"" + kind + "\"") + "><th scope=\"row\">" + name + "</th>" + cost_cells(costs, most) +
           "</tr>";
  };
  if (block.first < 0) return "<tbody>" + row("", breakable(block.name), block.all()) + "</tbody>";
  std::string name = block.name + "." + std::to_string(block.first);
  if (block.layers() > 1) name += "-" + std::to_string(block.last);
  const std::string times = block.layers() > 1 ? " <span class=\"faint\">(" + std::to_string(block.layers()) + "×)</span>" : "";
  std::string out =
      "<tbody class=\"fold\">" + row("", "<details><summary>" + breakable(name) + times + "</summary></details>", block.all());
  if (block.layers() > 1) out += row("part each", "each layer", block.each());
  for (const CostPart& part : block.parts) out += row("part", breakable(part.name), part.costs);
  return out + "</tbody>";
}

}  // namespace

std::string costs_html(const RunRecord& run) {
  const Json& layers = list_in(run.costs, "layers");
  if (layers.empty()) return missing_html("costs.json", "the costs of layers");
  const std::vector<CostBlock> blocks = fold_layers(layers);
  Costs all{}, most{};
  for (const CostBlock& block : blocks) {
    add_costs(all, block.all());
    for (size_t k = 0; k < most.size(); ++k) most[k] = std::max(most[k], block.all()[k]);
  }
  std::string rows, total, head;
  for (size_t k = 0; k < kCosts.size(); ++k) {
    head += "<th scope=\"col\" class=\"number\">" + readable(kCosts[k].key) + "</th>";
    total += "<td class=\"number\">" + cost_text(all[k], kCosts[k]) + "</td>";
  }
  for (const CostBlock& block : blocks) rows += block_html(block, most);
  return std::string(kScrollingCard) +
         "<p class=\"faint\">Per sample: multiply-adds of a forward pass, bytes of activations. Identical "
         "layers share a row; open it to see the parts of one layer.</p><table class=\"bars costs\"><thead><tr><th "
         "scope=\"col\">part</th>" +
         head + "</tr></thead><tbody><tr class=\"total\"><th scope=\"row\">all " + std::to_string(layers.size()) + " parts</th>" + total +
         "</tr></tbody>" + rows + "</table></div>\n";
}

}  // namespace heed
