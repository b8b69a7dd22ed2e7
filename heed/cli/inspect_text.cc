// Where heads look, for a terminal and for machines.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "heed/cli/inspect_look.h"
#include "heed/io/markup.h"

namespace heed::cli {
namespace {

// Text as a terminal may show it, filled up to a width; a newline gets its mark, what else would move the cursor becomes a question mark.
std::string token_text(const std::string& token, size_t width = 0) {
  std::string out;
  const std::vector<Letter> letters = letters_of(token);
  for (const Letter& letter : letters) {
    const bool moves = letter.point < 0x20 || (letter.point >= 0x7f && letter.point < 0xa0) || letter.point == 0xfffd;
    out += letter.point == '\n' ? "\u23ce" : moves ? "?" : std::string(letter.bytes);
  }
  return out + std::string(width > letters.size() ? width - letters.size() : 0, ' ');
}

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

// A grid of patches, darkest where least is seen.
void add_grid(std::ostream& out, const Look& look, const std::vector<float>& seen) {
  constexpr std::string_view shades = " .:-=+*#%@";
  const float most = *std::max_element(seen.begin(), seen.end());
  for (int64_t row = 0; row < look.rows; ++row) {
    out << "  |";
    for (int64_t column = 0; column < look.columns; ++column) {
      const float share = most > 0 ? seen[static_cast<size_t>(row * look.columns + column)] / most : 0;
      const char shade = shades[std::min(static_cast<size_t>(share * static_cast<float>(shades.size())), shades.size() - 1)];
      out << shade << shade;
    }
    out << "|\n";
  }
}

void add_answers(std::ostream& out, const Look& look) {
  if (!look.translation.empty())
    out << (look.own_translation ? "translation: " : "given translation: ") << token_text(look.translation) << '\n';
  for (const LookAnswer& answer : look.answers) {
    out << token_text(answer.about) << ":";
    for (size_t i = 0; i < answer.labels.size(); ++i) {
      const Label& label = answer.labels[i];
      out << (i == 0 ? " " : ", ") << token_text(label.name) << ' ' << std::fixed << std::setprecision(answer.probabilities ? 1 : 4)
          << (answer.probabilities ? 100 * label.score : label.score) << (answer.probabilities ? "%" : "");
    }
    out << '\n';
  }
}

}  // namespace

std::string text_view(const Look& look, int64_t query) {
  std::ostringstream out;
  out << look.architecture << ", " << token_text(look.input) << '\n';
  add_answers(out, look);
  const AttentionMaps& maps = look.maps[0];
  // The last layer unless others were asked for: a screen has not room for all.
  const bool all = std::ssize(maps.layers) == maps.all_layers;
  for (size_t layer = all ? maps.layers.size() - 1 : 0; layer < maps.layers.size(); ++layer) {
    out << '\n' << (maps.kind == "attention" ? "" : maps.kind + ", ") << "layer " << maps.layers[layer] << ", " << of_heads(maps) << ":\n";
    if (look.kind == InputKind::picture)
      add_grid(out, look, patches_seen(look, maps.mean(layer), query));
    else
      add_tokens(out, maps, maps.mean(layer));
  }
  if (look.kind == InputKind::picture) {
    out << "\nrollout over all layers:\n";
    add_grid(out, look, patches_seen(look, look.rollout, query));
  }
  out << "\n--html FILE shows every token, layer and head; --png FILE and --svg FILE draw them\n";
  return out.str();
}

Json look_json(const Look& look) {
  Json maps = Json::array();
  for (const AttentionMaps& each : look.maps) {
    Json weights = Json::array();
    for (size_t layer = 0; layer < each.layers.size(); ++layer) {
      weights.push_back(Json::array());
      for (size_t head = 0; head < each.heads.size(); ++head) {
        weights.back().push_back(Json::array());
        const std::span<const float> map = each.map(layer, head);
        for (int64_t i = 0; i < each.N; ++i) {
          Json row = Json::array();
          for (int64_t j = 0; j < each.M; ++j) row.push_back(std::round(map[static_cast<size_t>(i * each.M + j)] * 1e6) / 1e6);
          weights.back().back().push_back(std::move(row));
        }
      }
    }
    maps.push_back({{"kind", each.kind},
                    {"queries", each.rows},
                    {"keys", each.columns},
                    {"layers", each.layers},
                    {"heads", each.heads},
                    {"weights", std::move(weights)}});
  }
  Json answers = Json::array();
  for (const LookAnswer& answer : look.answers) {
    Json labels = Json::array();
    for (const Label& label : answer.labels) labels.push_back({{"label", label.name}, {"id", label.id}, {"score", label.score}});
    answers.push_back({{"about", answer.about}, {"labels", std::move(labels)}});
  }
  Json out{{"architecture", look.architecture}, {"input", look.input}, {"prediction", std::move(answers)}};
  if (!look.translation.empty()) out["translation"] = look.translation;
  out["maps"] = std::move(maps);
  out["rollout"] = look.rollout;
  return out;
}

}  // namespace heed::cli
