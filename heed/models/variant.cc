#include "heed/models/variant.h"

#include <algorithm>

#include "heed/core/nearest.h"

namespace heed {
namespace {

const std::vector<std::string> kKeys{"positions", "reach", "attention",      "features", "reduction", "content",
                                     "pattern",   "norm",  "project_values", "pooling",  "soft_cap",  "stochastic_depth"};
const std::vector<std::string> kPositions{"none",     "learned",     "learned_2d",       "sinusoidal", "sinusoidal_2d", "rotary",
                                          "relative", "relative_2d", "relative_content", "alibi",      "gaussian",      "gaussian_full"};

constexpr int64_t kWidestRandomHead = 256;

void check_known(const Config& config, std::string_view key, const std::string& value, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  std::string all;
  for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
  config.refuse(key, "one of " + all + did_you_mean(value, known));
}

}  // namespace

Tensor AddedPositions::operator()(const Tensor& x, const Tensor& position_ids, int64_t first) const {
  const int64_t N = x.size(1);
  if (grid) return x + grid();
  if (computed && position_ids.defined()) return x + computed->at(position_ids);
  if (computed) {
    check(first + N <= computed->positions(), "model: ", first + N, " tokens, expected at most ", computed->positions());
    return x + slice(computed->rows(first + N), 0, first, first + N);
  }
  if (!table.defined()) return x;
  const int64_t P = table.size(-2);
  const Tensor rows = reshape(table, {P, table.size(-1)});
  if (position_ids.defined()) return x + embedding(rows, position_ids);
  check(first + N <= P, "model: ", first + N, " tokens, expected at most ", P);
  return x + slice(rows, 0, first, first + N);
}

Variant::Variant(const Config& config, int64_t tokens, std::optional<TokenGrid> grid)
    : own_(config.below("heed")), tokens_(tokens), grid_(grid), projections_(std::make_shared<std::map<int64_t, Tensor>>()) {
  for (const auto& [key, value] : own_.json().items())
    check<FileError>(std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end(), config.source(), ": heed.", key, " is not known",
                     did_you_mean(key, kKeys));
  if (!own_.has("positions")) return;
  const Json& found = own_.json().at("positions");
  for (const Json& each : found.is_array() ? found : Json::array({found})) {
    if (!each.is_string()) own_.refuse("positions", "a name or a list of names");
    positions_.push_back(each.get<std::string>());
    check_known(own_, "positions", positions_.back(), kPositions);
  }
}

bool Variant::uses(std::string_view position) const {
  return std::find(positions_.begin(), positions_.end(), position) != positions_.end();
}

const TokenGrid& Variant::grid(std::string_view key) const {
  if (!grid_) own_.refuse(key, "one without a grid: only images without class token have one (heed.pooling gap, map or flatten)");
  return *grid_;
}

Pooling Variant::pooling() const {
  const std::string name = own_.string("pooling", "cls");
  check_known(own_, "pooling", name, {"cls", "gap", "map", "flatten"});
  return pooling_named(name);
}

NormPlace Variant::place(NormPlace fallback) const {
  if (!own_.has("norm")) return fallback;
  const std::string name = own_.string("norm", "");
  check_known(own_, "norm", name, {"before", "after"});
  return name == "before" ? NormPlace::before : NormPlace::after;
}

AddedPositions Variant::added_positions(const Scope& scope, int64_t D, const std::function<AddedPositions()>& own) const {
  if (positions_.empty() || uses("learned")) return own();
  if (uses("sinusoidal")) return {.computed = sinusoidal_table(tokens_, D)};
  if (uses("sinusoidal_2d")) return {.grid = SinusoidalPositions2d(grid("positions")[0], grid("positions")[1], D)};
  if (!uses("learned_2d")) return {};
  return {.grid = LearnedPositions2d(scope / "position_embeddings_2d", grid("positions")[0], grid("positions")[1], D)};
}

std::vector<ScorePositions> Variant::in_scores(const Scope& scope, const MultiHeadOptions& options, int64_t layer) const {
  const int64_t H = options.heads, D = options.head_width == 0 ? options.width / H : options.head_width;
  const int64_t reach = own_.size("reach", std::max<int64_t>(tokens_ - 1, 1));
  std::vector<ScorePositions> out;
  if (uses("relative")) out.emplace_back(Term(relative_positions(scope / "relative", H, reach)));
  if (uses("relative_2d"))
    out.emplace_back(Term(relative_positions_2d(scope / "relative_2d", H, grid("positions")[0], grid("positions")[1])));
  if (uses("relative_content")) out.emplace_back(RelativeContent(scope / "relative_content", H, D, options.width));
  if (uses("alibi")) out.emplace_back(Term(Alibi{alibi_slopes(H)}));
  if (uses("gaussian")) out.emplace_back(Term(gaussian_positions(scope / "gaussian", H, grid("positions")[1])));
  if (uses("gaussian_full")) {
    const Initializer near_identity = [](const Shape& shape, Rng& rng) {
      const Tensor one = Tensor::from(std::vector<float>{1, 0, 0, 1}, {1, 2, 2});
      return one + initializer::normal(0.01f)(shape, rng);
    };
    const Scope full = scope / "gaussian_full";
    out.emplace_back(Term(Gaussian2dFull{.spread = full.get("spread", {H, 2, 2}, near_identity, {.decays = false}),
                                         .center = full.get("center", {H, 2}, initializer::normal(2), {.decays = false}),
                                         .width = grid("positions")[1]}));
  }
  if (own_.has("pattern")) {
    const Json& found = own_.json().at("pattern");
    for (const Json& each : found.is_array() ? found : Json::array({found}))
      add_pattern(out, Config(each, own_.source() + ": heed.pattern"), layer);
  }
  if (own_.has("soft_cap")) out.emplace_back(Term(SoftCap{own_.number("soft_cap", 0, 1e-3, 1e6)}));
  return out;
}

void Variant::add_pattern(std::vector<ScorePositions>& out, const Config& pattern, int64_t layer) const {
  const std::string kind = pattern.string("kind", "");
  check_known(pattern, "kind", kind, {"causal", "window", "chunks", "dilated", "grid_window"});
  const auto add = [&](const Term& term) { out.emplace_back(term); };
  if (kind == "causal") add(Causal{});
  if (kind == "window") {
    const int64_t before = pattern.size("before", 0, 0);
    add(Window{.before = before, .after = pattern.size("after", before, 0), .globals = pattern.size("globals", 0, 0)});
  }
  if (kind == "chunks") {
    const int64_t size = pattern.size("size", 1);
    const bool shifted = pattern.flag("shifted", false) && layer % 2 == 1;  // every second layer, as in Liu et al. 2021
    add(Chunks{.size = size, .shift = shifted ? size / 2 : 0});
  }
  if (kind == "dilated") add(Dilated{pattern.size("step", 1)});
  if (kind == "grid_window") {
    const int64_t rows = pattern.size("rows", 0, 0);
    add(GridWindow{.rows = rows, .columns = pattern.size("columns", rows, 0), .width = grid("pattern")[1]});
  }
}

AttentionKind Variant::kind(int64_t head_width) const {
  AttentionKind out;
  const std::string name = own_.string("attention", "soft");
  check_known(own_, "attention", name, {"soft", "hard", "kernel", "channel", "pooled"});
  if (name == "hard") out.kind = AttentionKind::Kind::hard;
  if (name == "channel") out.kind = AttentionKind::Kind::channel;
  if (name == "pooled") {
    out.kind = AttentionKind::Kind::pooled;
    out.grid = grid("attention");
    out.reduction = own_.size("reduction", 2);
  }
  if (name == "kernel") {
    out.kind = AttentionKind::Kind::linear;
    const std::string map = own_.string("features", "elu");
    check_known(own_, "features", map, {"elu", "relu", "random"});
    if (map == "relu") out.features.map = FeatureMap::relu;
    if (map == "random") {
      check(head_width <= kWidestRandomHead, "heed.features random: heads of ", head_width, " features, expected at most ",
            kWidestRandomHead);
      Rng rng(1);  // fixed features, not stored in checkpoints
      out.features.map = FeatureMap::random;
      Tensor& projection = (*projections_)[head_width];
      if (!projection.defined()) projection = random_projection(4 * head_width, head_width, rng);
      out.features.projection = projection;
    }
  }
  return out;
}

LayerOptions Variant::apply(LayerOptions options, int64_t layer, int64_t layers) const {
  MultiHeadOptions& attention = options.attention;
  const int64_t head_width = attention.head_width == 0 ? attention.width / attention.heads : attention.head_width;
  attention.content = own_.flag("content", attention.content);
  attention.project_values = own_.flag("project_values", attention.project_values);
  if (!attention.content || !attention.project_values) attention.key_heads = 0;
  if (!attention.content) attention.fused = false;
  attention.kind = kind(head_width);
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
