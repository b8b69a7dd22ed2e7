#include "heed/models/cost_attention.h"

#include <algorithm>
#include <cstdlib>

#include "heed/attention/attention_flops.h"
#include "heed/models/choices.h"
#include "heed/nn/multi_head.h"

namespace heed {
namespace {

int64_t layer_in(const std::string& path) {
  for (const std::string& part : name_parts(path))
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string::npos) return std::atoll(part.c_str());
  return 0;
}

int64_t heads_of(const Config& config, const std::string& path) {
  if (path.starts_with("model.encoder.")) return config.size("encoder_attention_heads", 16);
  if (path.starts_with("model.decoder.")) return config.size("decoder_attention_heads", 16);
  for (const char* key : {"num_attention_heads", "n_heads", "n_head"})
    if (config.has(key)) return config.size(key, 1);
  return path.find("self_attn") == std::string::npos ? 12 : 32;  // defaults of BERT and Llama
}

// Position-only Gaussian heads on a grid: the map factors into rows and columns (attention/separable.h).
bool separable(const Config& own) {
  const std::vector<Chosen> positions = chosen_in(own, "positions");
  return positions.size() == 1 && positions[0].choice->name == "gaussian" && choices("attention").in(own).name == "soft" &&
         !own.has("pattern") && !own.has("soft_cap");
}

}  // namespace

std::vector<std::string> name_parts(const std::string& name) {
  std::vector<std::string> parts{""};
  for (char letter : name) {
    if (letter == '.')
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

bool is_one_of(const std::string& part, std::initializer_list<const char*> choices) {
  return std::any_of(choices.begin(), choices.end(), [&](const char* each) { return part == each; });
}

std::string attention_path(const std::string& name) {
  std::string path;
  for (const std::string& part : name_parts(name)) {
    path += (path.empty() ? "" : ".") + part;
    if (is_one_of(part, {"attention", "attn", "self_attn", "encoder_attn"})) return path == name ? "" : path;
  }
  return "";
}

void AttentionShape::add_projection(const ModelPart& part) {
  const Shape& shape = part.parameters[0].tensor.shape();
  if (shape.rank() != 2) return;
  const std::vector<std::string> names = name_parts(part.name);
  const std::string& last = names.back();
  if (std::find(names.begin(), names.end(), "positions") != names.end()) {
    return;
  } else if (is_one_of(last, {"query", "q_lin", "q_proj"})) {
    query = shape[0];
  } else if (is_one_of(last, {"key", "k_lin", "k_proj"})) {
    key = shape[0];
  } else if (is_one_of(last, {"value", "v_lin", "v_proj"})) {
    value = shape[0];
  } else if (last == "c_attn") {
    query = key = value = shape[0] / 3;
  } else {
    output = shape[1];
  }
}

int64_t AttentionShape::cached() const { return std::max<int64_t>(key, 1) + (value > 0 ? value : width); }

int64_t count_visible_pairs(int64_t N, bool causal, const Json& pattern, int64_t columns, int64_t layer) {
  if (pattern.is_null()) return causal ? checked_multiply(N, N + 1) / 2 : checked_multiply(N, N);
  std::vector<Term> masks;
  if (causal) masks.emplace_back(Causal{});
  for (const Chosen& each : chosen_in(Config({{"pattern", pattern}}, "config.json"), "pattern")) {
    TermInput input{
        .values = each.given, .tensors = {}, .place = {.tokens = N, .rows = (N - 1) / columns + 1, .columns = columns, .layer = layer}};
    complete_settings(*each.choice->term, input.values, input.place);
    masks.push_back(make_term(*each.choice->term, input));
  }
  return visible_pairs(masks, N);
}

int64_t PairCounter::operator()(int64_t N, bool causal, const Json& pattern, int64_t columns, int64_t layer) {
  if (pattern.is_null()) return count_visible_pairs(N, causal, pattern, columns, layer);
  const auto [found, fresh] = known_.try_emplace({N, causal, columns, layer % 2}, 0);
  if (fresh) found->second = count_visible_pairs(N, causal, pattern, columns, layer);
  return found->second;
}

AttentionWork attention_work(const AttentionShape& at, const Config& config, const std::string& path, PairCounter& pairs_of) {
  const Config own = config.below("heed");
  using Kind = AttentionKind::Kind;
  const auto kind = at.self ? static_cast<Kind>(choices("attention").in(own).value) : Kind::soft;
  const int64_t H = heads_of(config, path);
  const auto plain = [](int64_t forward) { return AttentionWork{forward, 2 * forward}; };
  if (kind == Kind::linear) {  // sums of phi(k) v^T over keys, then phi(q) times the sums
    const bool random = choices("features").in(own).value == static_cast<int>(FeatureMap::random);
    const int64_t F = (random ? 4 : 1) * at.query, E = at.output / H;
    return plain(checked_multiply(at.N + at.M, checked_multiply(F, E + (random ? at.query / H : 0))) + checked_multiply(at.N, F));
  }
  if (kind == Kind::channel) return plain(checked_multiply(at.N, checked_multiply(at.query + at.output, at.query / H)));
  if (at.self && at.query == 0 && !at.drops && separable(own)) {  // along rows, then columns; the gradient recomputes the first product
    const int64_t all = checked_multiply(at.N, at.output);
    return {checked_multiply(all, at.grid[0] + at.grid[1]), checked_multiply(all, 3 * at.grid[0] + 2 * at.grid[1])};
  }
  int64_t pairs = checked_multiply(at.N, at.M);
  if (kind == Kind::pooled) {
    const int64_t r = own.size("reduction", 2);
    pairs = checked_multiply(at.N, ((at.grid[0] + r - 1) / r) * ((at.grid[1] + r - 1) / r));
  } else if (at.self && at.N == at.M) {
    const Json pattern = own.has("pattern") ? own.json().at("pattern") : Json();
    pairs = pairs_of(at.N, at.causal, pattern, std::max<int64_t>(at.grid[1], 1), layer_in(path));
  }
  // Backward: scores are recomputed, then the gradients of weights, values, queries and keys. Hard attention also needs the soft rows.
  int64_t scores = at.query;
  if (at.self)
    for (const Chosen& each : chosen_in(own, "positions")) scores += each.choice->term ? each.choice->term->products * at.query : 0;
  const int64_t again = kind == Kind::hard ? scores + at.output : 0;
  return {checked_multiply(pairs, scores + at.output), checked_multiply(pairs, 3 * scores + 2 * at.output + again)};
}

}  // namespace heed
