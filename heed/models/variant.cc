#include "heed/models/variant.h"

#include <algorithm>

#include "heed/core/nearest.h"

namespace heed {
namespace {

constexpr int64_t kWidestRandomHead = 256, kMostExperts = 256;

std::vector<std::string> known_keys() {
  std::vector<std::string> out{"reach", "reduction", "content", "project_values", "stochastic_depth", "pruned_heads", "experts"};
  for (const Choices& each : all_choices()) out.push_back(each.key);
  for (const TermInfo& each : term_infos())
    if (each.use == TermUse::key) out.push_back(each.name);
  return out;
}

void check_keys(const Config& config, const char* prefix, const std::vector<std::string>& known) {
  for (const auto& [key, value] : config.json().items())
    check<FileError>(std::find(known.begin(), known.end(), key) != known.end(), config.source(), ": ", prefix, key, " is not known",
                     did_you_mean(key, known));
}

}  // namespace

Tensor AddedPositions::content(const Tensor& x) const {
  MovedTokens* const moved = MovedTokens::newest_;
  if (!moved || (!has_table() && !grid)) return x;
  constexpr int64_t most = MovedTokens::kRotations;
  const int64_t N = x.size(1), moving = N - fixed, places = moving <= most ? moved->turn_ : (2 * moved->turn_ + 1) * moving / (2 * most);
  moved->longest_ = std::max(moved->longest_, moving);
  if (moving == 0) return x;
  const int64_t begin = N - places % moving;  // of the tokens that move to the front
  return concat({slice(x, 1, 0, fixed), slice(x, 1, begin, N), slice(x, 1, fixed, begin)}, 1);
}

Tensor AddedPositions::operator()(const Tensor& tokens, const Tensor& position_ids, int64_t first) const {
  const Tensor x = content(tokens);
  const int64_t N = x.size(1);
  if (grid) return x + grid(x.device());
  if (computed && position_ids.defined()) return x + computed->at(position_ids, x.device());
  if (computed) {
    check(first + N <= computed->positions(), "model: ", first + N, " tokens, expected at most ", computed->positions());
    return x + slice(computed->rows(first + N, x.device()), 0, first, first + N);
  }
  if (!table.defined()) return x;
  const int64_t P = table.size(-2);
  const Tensor rows = reshape(table, {P, table.size(-1)});
  if (position_ids.defined()) return x + embedding(rows, position_ids.to(x.device()));
  check(first + N <= P, "model: ", first + N, " tokens, expected at most ", P);
  return x + slice(rows, 0, first, first + N);
}

Variant::Variant(const Config& config, int64_t tokens, std::optional<TokenGrid> grid)
    : own_(config.below("heed")), tokens_(tokens), grid_(grid), projections_(std::make_shared<std::map<int64_t, Tensor>>()) {
  check_keys(own_, "heed.", known_keys());
  check_keys(own_.below("experts"), "heed.experts.", {"count", "top", "balance"});
  positions_ = chosen_in(own_, "positions");
  patterns_ = chosen_in(own_, "pattern");
}

bool Variant::uses(std::string_view position) const {
  return std::any_of(positions_.begin(), positions_.end(), [&](const Chosen& each) { return each.choice->name == position; });
}

const TokenGrid& Variant::grid(std::string_view key) const {
  if (!grid_) own_.refuse(key, "one without a grid: only images without class token have one (heed.pooling gap, map or flatten)");
  return *grid_;
}

Pooling Variant::pooling() const { return static_cast<Pooling>(choices("pooling").in(own_).value); }

NormPlace Variant::place(NormPlace fallback) const {
  return own_.has("norm") ? static_cast<NormPlace>(choices("norm").in(own_).value) : fallback;
}

AddedPositions Variant::added_positions(const Scope& scope, int64_t D, const std::function<AddedPositions()>& own) const {
  if (positions_.empty() || uses("learned")) return own();
  if (uses("sinusoidal")) return {.computed = sinusoidal_table(tokens_, D)};
  if (uses("sinusoidal_2d")) return {.grid = SinusoidalPositions2d(grid("positions")[0], grid("positions")[1], D)};
  if (!uses("learned_2d")) return {};
  const LearnedPositions2d learned(scope / "position_embeddings_2d", grid("positions")[0], grid("positions")[1], D);
  return {.grid = [learned](Device) { return learned(); }};
}

// A term with the settings of config.json, where settings such as reach may also be keys of "heed".
Term Variant::term(const Scope& scope, const Chosen& chosen, int64_t heads, int64_t layer) const {
  const TermInfo& info = *chosen.choice->term;
  TermPlace place{.tokens = tokens_, .layer = layer};
  if (info.needs_grid) {
    const TokenGrid& cells = grid(info.use == TermUse::pattern ? "pattern" : "positions");
    place.rows = cells[0];
    place.columns = cells[1];
  }
  TermValues given = chosen.given;
  for (const TermSetting& each : info.settings)
    if (own_.has(each.name)) given.try_emplace(each.name, setting_in(own_, each.name, each));
  return position_term(scope / info.name, info, heads, place, given);
}

std::vector<ScorePositions> Variant::in_scores(const Scope& scope, const MultiHeadOptions& options, int64_t layer) const {
  const int64_t H = options.heads, D = options.head_width == 0 ? options.width / H : options.head_width;
  std::vector<ScorePositions> out;
  for (const Choice& each : choices("positions").all) {
    const auto found = std::find_if(positions_.begin(), positions_.end(), [&](const Chosen& chosen) { return chosen.choice == &each; });
    if (!each.term || found == positions_.end()) continue;
    if (each.term->products > 0)  // its table is computed
      out.emplace_back(
          RelativeContent(scope / each.name, H, D, options.width, each.needs_grid ? std::optional(grid("positions")) : std::nullopt));
    else
      out.emplace_back(term(scope, *found, H, layer));
  }
  for (const Chosen& each : patterns_) out.emplace_back(term(scope, each, H, layer));
  for (const TermInfo& each : term_infos())
    if (each.use == TermUse::key && own_.has(each.name)) {
      const TermSetting& first = each.settings[0];
      out.emplace_back(position_term(scope, each, H, {}, {{first.name, setting_in(own_, each.name, first)}}));
    }
  return out;
}

AttentionKind Variant::kind(int64_t head_width) const {
  AttentionKind out{.kind = static_cast<AttentionKind::Kind>(choices("attention").in(own_).value)};
  if (out.kind == AttentionKind::Kind::pooled) {
    out.grid = grid("attention");
    out.reduction = own_.size("reduction", 2);
  }
  if (out.kind != AttentionKind::Kind::linear) return out;
  out.features.map = static_cast<FeatureMap>(choices("features").in(own_).value);
  if (out.features.map != FeatureMap::random) return out;
  check(head_width <= kWidestRandomHead, "heed.features random: heads of ", head_width, " features, expected at most ", kWidestRandomHead);
  Rng rng(1);  // fixed features, not stored in checkpoints
  Tensor& projection = (*projections_)[head_width];
  if (!projection.defined()) projection = random_projection(4 * head_width, head_width, rng);
  out.features.projection = projection;
  return out;
}

// "pruned_heads": {"0": [1, 3]}: layer 0 lacks heads 1 and 3 of those that the config counts; the others keep their width.
int64_t Variant::heads_left(int64_t heads, int64_t layer) const {
  if (!own_.has("pruned_heads")) return heads;
  const Config pruned = own_.below("pruned_heads");
  const std::string key = std::to_string(layer);
  if (!pruned.has(key)) return heads;
  const std::string expected = "fewer than all heads, numbers from 0 to " + std::to_string(heads - 1) + " in ascending order";
  const Json& gone = pruned.json().at(key);
  if (!gone.is_array() || std::ssize(gone) >= heads) pruned.refuse(key, expected);
  int64_t before = -1;
  for (const Json& each : gone) {
    if (!each.is_number_integer() || each.get<int64_t>() <= before || each.get<int64_t>() >= heads) pruned.refuse(key, expected);
    before = each.get<int64_t>();
  }
  return heads - std::ssize(gone);
}

LayerOptions Variant::apply(LayerOptions options, int64_t layer, int64_t layers) const {
  MultiHeadOptions& attention = options.attention;
  const int64_t head_width = attention.head_width == 0 ? attention.width / attention.heads : attention.head_width;
  attention.content = own_.flag("content", attention.content);
  attention.project_values = own_.flag("project_values", attention.project_values);
  if (!attention.content || !attention.project_values) attention.key_heads = 0;
  if (!attention.content) attention.fused = false;
  if (const int64_t left = heads_left(attention.heads, layer); left < attention.heads) {
    if (attention.key_heads != 0 && attention.key_heads != attention.heads) own_.refuse("pruned_heads", "none: heads share keys");
    attention.head_width = head_width;
    attention.heads = left;
    attention.key_heads = 0;
  }
  attention.kind = kind(head_width);
  if (own_.has("experts")) {
    const Config experts = own_.below("experts");
    FeedForwardOptions& block = options.feed_forward;
    block.experts = experts.size("count", 4);
    block.top = experts.size("top", std::min<int64_t>(2, block.experts));
    block.balance = experts.number("balance", block.balance, 0, 100);
    if (block.top > block.experts || block.experts > kMostExperts)
      own_.refuse("experts", "a top of at most count, and a count of at most 256");
  }
  options.place = place(options.place);
  options.branch.stochastic_depth = own_.probability("stochastic_depth", options.branch.stochastic_depth);
  if (!positions_.empty()) {
    attention.rotary.reset();
    if (uses("rotary")) attention.rotary = Rotary(tokens_, head_width);
  }
  attention.positions = [*this, attention, layer](const Scope& scope) { return in_scores(scope, attention, layer); };
  return options_of_layer(options, layer, layers);
}

Pool Variant::pool(const Scope& scope, const LayerOptions& options) const {
  Pool out{.kind = pooling()};
  if (out.kind != Pooling::attention) return out;
  FeedForwardOptions feed_forward{.hidden_width = options.feed_forward.hidden_width, .activation = options.feed_forward.activation};
  out.attention =
      make_attention_pooling(scope, {.width = options.attention.width, .heads = options.attention.heads}, feed_forward, options.eps);
  return out;
}

}  // namespace heed
