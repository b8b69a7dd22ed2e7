#include "heed/models/cost_attention.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

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

struct Keys {  // [begin, end)
  int64_t begin, end;
};
using KeyRanges = std::vector<Keys>;  // ascending, disjoint

struct Pattern {
  explicit Pattern(const Json& json, int64_t layer)
      : kind(json.value("kind", "")),
        before(json.value("before", int64_t{0})),
        after(json.value("after", before)),
        globals(json.value("globals", int64_t{0})),
        size(json.value("size", int64_t{1})),
        shift(json.value("shifted", false) && layer % 2 == 1 ? size / 2 : 0),
        step(std::max<int64_t>(json.value("step", int64_t{1}), 1)),
        rows(json.value("rows", int64_t{0})),
        columns(json.value("columns", rows)) {}

  // The keys visible to query i of N. "dilated" is ignored here, as its keys are not ranges. width: of the grid
  KeyRanges visible(int64_t i, int64_t N, int64_t width) const;

  std::string kind;
  int64_t before, after, globals, size, shift, step, rows, columns;
};

KeyRanges Pattern::visible(int64_t i, int64_t N, int64_t width) const {
  if (kind == "causal") return {{0, i + 1}};
  if (kind == "window") {
    if (i < globals) return {{0, N}};
    if (globals >= i - before) return {{0, std::max(globals, i + after + 1)}};
    return {{0, globals}, {i - before, i + after + 1}};
  }
  if (kind == "chunks") {
    const int64_t first = (i + shift) / size * size - shift;
    return {{first, first + size}};
  }
  if (kind == "dilated") return {{0, N}};
  const int64_t y = i / width, x = i % width;  // grid_window
  KeyRanges out;
  for (int64_t row = std::max<int64_t>(y - rows, 0); row <= std::min(y + rows, (N - 1) / width); ++row)
    out.push_back({row * width + std::max<int64_t>(x - columns, 0), row * width + std::min(x + columns, width - 1) + 1});
  return out;
}

KeyRanges in_both(const KeyRanges& a, const KeyRanges& b) {
  KeyRanges out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Keys both{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (both.begin < both.end) out.push_back(both);
    ++(a[i].end < b[j].end ? i : j);
  }
  return out;
}

// The number of j in the range with j - i a multiple of step.
int64_t count_every(Keys range, int64_t i, int64_t step) {
  const int64_t offset = ((i - range.begin) % step + step) % step, first = range.begin + offset;
  return first < range.end ? (range.end - 1 - first) / step + 1 : 0;
}

// Position-only Gaussian heads on a grid: the map factors into rows and columns (attention/separable.h).
bool separable(const Config& own) {
  const bool gaussian =
      own.has("positions") && (own.json().at("positions") == "gaussian" || own.json().at("positions") == Json::array({"gaussian"}));
  return gaussian && own.string("attention", "soft") == "soft" && !own.has("pattern") && !own.has("soft_cap");
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
    relative = relative || last == "position";
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
  constexpr int64_t most_ranges = int64_t{1} << 20;
  if (pattern.is_null()) return causal ? checked_multiply(N, N + 1) / 2 : checked_multiply(N, N);
  std::vector<Pattern> all;
  int64_t step = 1, ranges = 1;  // ranges: maximum per query
  for (const Json& each : pattern.is_array() ? pattern : Json::array({pattern})) {
    const Pattern& last = all.emplace_back(each, layer);
    if (last.kind == "dilated") step = std::min(std::lcm(step, last.step), std::max<int64_t>(N, 1));
    if (last.kind == "grid_window") ranges = std::min(2 * last.rows, (N - 1) / columns) + 1;
  }
  check(N <= most_ranges / ranges, "cost: heed.pattern of ", N, " tokens is too long to count its pairs, expected at most ",
        most_ranges / ranges);
  int64_t pairs = 0;
  for (int64_t i = 0; i < N; ++i) {
    KeyRanges keys{{0, causal ? i + 1 : N}};
    for (const Pattern& each : all) keys = in_both(keys, each.visible(i, N, columns));
    for (const Keys& range : keys) pairs += count_every(range, i, step);
  }
  return pairs;
}

int64_t PairCounter::operator()(int64_t N, bool causal, const Json& pattern, int64_t columns, int64_t layer) {
  if (pattern.is_null()) return count_visible_pairs(N, causal, pattern, columns, layer);
  const auto [found, fresh] = known_.try_emplace({N, causal, columns, layer % 2}, 0);
  if (fresh) found->second = count_visible_pairs(N, causal, pattern, columns, layer);
  return found->second;
}

AttentionWork attention_work(const AttentionShape& at, const Config& config, const std::string& path, PairCounter& pairs_of) {
  const Config own = config.below("heed");
  const std::string kind = own.string("attention", "soft");
  const int64_t H = heads_of(config, path);
  const auto plain = [](int64_t forward) { return AttentionWork{forward, 2 * forward}; };
  if (at.self && kind == "kernel") {  // sums of phi(k) v^T over keys, then phi(q) times the sums
    const bool random = own.string("features", "elu") == "random";
    const int64_t F = (random ? 4 : 1) * at.query, E = at.output / H;
    return plain(checked_multiply(at.N + at.M, checked_multiply(F, E + (random ? at.query / H : 0))) + checked_multiply(at.N, F));
  }
  if (at.self && kind == "channel") return plain(checked_multiply(at.N, checked_multiply(at.query + at.output, at.query / H)));
  if (at.self && at.query == 0 && !at.drops && separable(own)) {  // along rows, then columns; the gradient recomputes the first product
    const int64_t all = checked_multiply(at.N, at.output);
    return {checked_multiply(all, at.grid[0] + at.grid[1]), checked_multiply(all, 3 * at.grid[0] + 2 * at.grid[1])};
  }
  int64_t pairs = checked_multiply(at.N, at.M);
  if (at.self && kind == "pooled") {
    const int64_t r = own.size("reduction", 2);
    pairs = checked_multiply(at.N, ((at.grid[0] + r - 1) / r) * ((at.grid[1] + r - 1) / r));
  } else if (at.self && at.N == at.M) {
    const Json pattern = own.has("pattern") ? own.json().at("pattern") : Json();
    pairs = pairs_of(at.N, at.causal, pattern, std::max<int64_t>(at.grid[1], 1), layer_in(path));
  }
  // Backward: scores are recomputed, then the gradients of weights, values, queries and keys. Hard attention also needs the soft rows.
  const int64_t scores = at.query + (at.relative ? at.query : 0), again = at.self && kind == "hard" ? scores + at.output : 0;
  return {checked_multiply(pairs, scores + at.output), checked_multiply(pairs, 3 * scores + 2 * at.output + again)};
}

}  // namespace heed
