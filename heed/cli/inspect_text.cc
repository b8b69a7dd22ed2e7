// Attention maps and predictions for a terminal and as JSON.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "heed/cli/inspection.h"
#include "heed/io/markup.h"

namespace heed::cli {

constexpr std::string_view kShades = " .:-=+*#%@";

std::string token_text(const std::string& token, size_t width) {
  std::string out;
  const std::vector<Letter> letters = letters_of(token);
  for (const Letter& letter : letters) {
    const bool control = letter.point < 0x20 || (letter.point >= 0x7f && letter.point < 0xa0) || letter.point == 0xfffd;
    out += letter.point == '\n' ? "\u23ce" : control ? "?" : std::string(letter.bytes);
  }
  return out + std::string(width > letters.size() ? width - letters.size() : 0, ' ');
}

void add_grid(std::ostream& out, const Inspection& inspection, std::span<const float> weights, float least, float most) {
  for (int64_t row = 0; row < inspection.rows; ++row) {
    out << "  |";
    for (int64_t column = 0; column < inspection.columns; ++column) {
      const float above = weights[static_cast<size_t>(row * inspection.columns + column)] - least,
                  share = most > least ? above / (most - least) : 0;
      const char shade = kShades[std::min(static_cast<size_t>(share * static_cast<float>(kShades.size())), kShades.size() - 1)];
      out << shade << shade;
    }
    out << "|\n";
  }
}

namespace {

size_t widest(const std::vector<std::string>& tokens) {
  size_t out = 0;
  for (const std::string& token : tokens) out = std::max(out, letters_of(token).size());
  return std::min<size_t>(out, 24);
}

std::string of_heads(const AttentionMaps& maps) {
  if (maps.heads.size() == 1) return "head " + std::to_string(maps.heads[0]);
  return "mean of " + std::to_string(maps.heads.size()) + " heads";
}

void add_tokens(std::ostream& out, const AttentionMaps& maps, const std::vector<float>& map) {
  constexpr size_t shown = 4;
  const size_t row_width = widest(maps.rows), width = widest(maps.columns), M = static_cast<size_t>(maps.M);
  for (size_t i = 0; i < static_cast<size_t>(maps.N); ++i) {
    std::vector<size_t> order(M);
    std::iota(order.begin(), order.end(), size_t{0});
    const size_t best = std::min(shown, M);
    const auto more = [&](size_t a, size_t b) { return map[i * M + a] != map[i * M + b] ? map[i * M + a] > map[i * M + b] : a < b; };
    std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(best), order.end(), more);
    out << "  " << token_text(maps.rows[i], row_width) << " ->";
    for (size_t rank = 0; rank < best; ++rank) {
      const float weight = map[i * M + order[rank]];
      if (weight < 0.005f) break;
      out << "  " << token_text(maps.columns[order[rank]], width) << ' ' << std::fixed << std::setprecision(2) << weight;
    }
    out << '\n';
  }
}

void add_weights(std::ostream& out, const Inspection& inspection, const std::vector<float>& weights) {
  add_grid(out, inspection, weights, 0, *std::max_element(weights.begin(), weights.end()));
}

void add_predictions(std::ostream& out, const Inspection& inspection) {
  if (!inspection.translation.empty())
    out << (inspection.own_translation ? "translation: " : "provided translation: ") << token_text(inspection.translation) << '\n';
  for (const Prediction& prediction : inspection.predictions) {
    out << token_text(prediction.about) << ":";
    for (size_t i = 0; i < prediction.labels.size(); ++i) {
      const Label& label = prediction.labels[i];
      out << (i == 0 ? " " : ", ") << token_text(label.name) << ' ' << std::fixed << std::setprecision(prediction.probabilities ? 1 : 4)
          << (prediction.probabilities ? 100 * label.score : label.score) << (prediction.probabilities ? "%" : "");
    }
    out << '\n';
  }
}

}  // namespace

std::string text_view(const Inspection& inspection, int64_t query) {
  std::ostringstream out;
  out << inspection.architecture << ", " << token_text(inspection.input) << '\n';
  add_predictions(out, inspection);
  const AttentionMaps& maps = inspection.maps[0];
  // Only the last layer, unless layers were selected: all of them do not fit a screen.
  const bool all = std::ssize(maps.layers) == maps.all_layers;
  for (size_t layer = all ? maps.layers.size() - 1 : 0; layer < maps.layers.size(); ++layer) {
    out << '\n' << (maps.kind == "attention" ? "" : maps.kind + ", ") << "layer " << maps.layers[layer] << ", " << of_heads(maps) << ":\n";
    if (inspection.kind == InputKind::image)
      add_weights(out, inspection, patch_weights(inspection, maps.mean(layer), query));
    else
      add_tokens(out, maps, maps.mean(layer));
  }
  if (inspection.kind == InputKind::image) {
    out << "\nrollout over all layers:\n";
    add_weights(out, inspection, patch_weights(inspection, inspection.rollout, query));
    out << "\nTwo characters are a patch. From 0 to the largest weight of a grid: '" << kShades << "'\n";
  }
  out << "\n--html FILE shows every token, layer and head; --png FILE and --svg FILE draw them\n";
  return out.str();
}

Json inspection_json(const Inspection& inspection) {
  Json maps = Json::array();
  for (const AttentionMaps& each : inspection.maps) maps.push_back(maps_json(each));
  Json predictions = Json::array();
  for (const Prediction& prediction : inspection.predictions) {
    Json labels = Json::array();
    for (const Label& label : prediction.labels) labels.push_back({{"label", label.name}, {"id", label.id}, {"score", label.score}});
    predictions.push_back({{"about", prediction.about}, {"labels", std::move(labels)}});
  }
  Json out{{"architecture", inspection.architecture}, {"input", inspection.input}, {"prediction", std::move(predictions)}};
  if (!inspection.translation.empty()) out["translation"] = inspection.translation;
  out["maps"] = std::move(maps);
  out["rollout"] = inspection.rollout;
  return out;
}

}  // namespace heed::cli
