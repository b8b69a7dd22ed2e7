#include "heed/cli/inspect_shapes.h"

#include <algorithm>
#include <sstream>

#include "heed/cli/module_tree.h"

namespace heed::cli {
namespace {

// A name around its first number: "encoder.layer.", 3, ".output". Without one, number is -1 and all is in `before`.
struct NumberedName {
  std::string before = {}, after = {};
  int64_t number = -1;
};

NumberedName numbered(const std::string& name) {
  for (size_t at = 0; at < name.size(); at = std::min(name.find('.', at), name.size() - 1) + 1) {
    const size_t end = std::min(name.find('.', at), name.size());
    const bool digits = end > at && end - at <= 9 &&
                        std::all_of(name.begin() + static_cast<int64_t>(at), name.begin() + static_cast<int64_t>(end),
                                    [](char letter) { return letter >= '0' && letter <= '9'; });
    if (digits) return {name.substr(0, at), name.substr(end), std::stoll(name.substr(at, end - at))};
  }
  return {.before = name};
}

// Neighbouring records with the same number: a layer, or one record without a number.
struct Layer {
  std::vector<ShapeRecord> records = {};
  std::string before = {};
  int64_t first = -1, last = -1;
};

bool repeats(const Layer& a, const Layer& b) {
  const auto same = [](const ShapeRecord& x, const ShapeRecord& y) {
    return numbered(x.name).after == numbered(y.name).after && x.shape == y.shape && x.dtype == y.dtype && x.from == y.from;
  };
  return b.first == a.last + 1 && a.before == b.before &&
         std::equal(a.records.begin(), a.records.end(), b.records.begin(), b.records.end(), same);
}

// Runs of calls that follow each other several times, as those of a recurrent layer, once each, with how often: "hidden x 5".
std::vector<ShapeRecord> without_repeats(const std::vector<ShapeRecord>& records) {
  constexpr int64_t longest = 32;  // calls of a step
  std::vector<ShapeRecord> out;
  for (auto at = records.begin(); at != records.end();) {
    int64_t length = 1, times = 1;
    for (int64_t n = 1; n <= longest && times == 1; ++n)
      for (auto next = at + std::min(n, records.end() - at); records.end() - next >= n && std::equal(at, at + n, next); next += n)
        length = n, ++times;
    for (int64_t i = 0; i < length; ++i) {
      out.push_back(at[i]);
      if (times > 1) out.back().name += " x " + std::to_string(times);
    }
    at += length * times;
  }
  return out;
}

std::vector<Layer> layers_in(const std::vector<ShapeRecord>& records, bool all) {
  std::vector<Layer> layers;
  for (const ShapeRecord& each : records) {
    const NumberedName name = numbered(each.name);
    if (layers.empty() || name.number < 0 || layers.back().before != name.before || layers.back().last != name.number)
      layers.push_back({.records = {}, .before = name.before, .first = name.number, .last = name.number});
    layers.back().records.push_back(each);
  }
  std::vector<Layer> out;
  for (Layer& each : layers)
    if (!all && !out.empty() && each.first >= 0 && repeats(out.back(), each))
      out.back().last = each.last;
    else
      out.push_back(std::move(each));
  return out;
}

}  // namespace

void print_shapes(std::ostream& out, const std::vector<ShapeRecord>& records, bool all) {
  std::vector<std::vector<std::string>> rows{{"name", "shape", "dtype", "from"}};
  for (const Layer& layer : layers_in(all ? records : without_repeats(records), all))
    for (const ShapeRecord& each : layer.records) {
      const std::string range = layer.last > layer.first ? layer.before + std::to_string(layer.first) + ".." + std::to_string(layer.last) +
                                                               numbered(each.name).after
                                                         : each.name;
      std::ostringstream shape;
      shape << each.shape;
      rows.push_back({range, shape.str(), std::string(name_of(each.dtype)), each.from});
    }
  print_rows(out, rows, {true, true, true, true});
}

}  // namespace heed::cli
