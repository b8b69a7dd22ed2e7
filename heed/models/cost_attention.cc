#include "heed/models/cost_attention.h"

#include <algorithm>
#include <cstdlib>
#include <functional>

namespace heed {
namespace {

int64_t layer_in(const std::string& path) {
  for (const std::string& word : name_words(path))
    if (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos) return std::atoll(word.c_str());
  return 0;
}

int64_t heads_of(const Config& config, const std::string& path) {
  if (path.starts_with("model.encoder.")) return config.size("encoder_attention_heads", 16);
  if (path.starts_with("model.decoder.")) return config.size("decoder_attention_heads", 16);
  for (const char* key : {"num_attention_heads", "n_heads", "n_head"})
    if (config.has(key)) return config.size(key, 1);
  return path.find("self_attn") == std::string::npos ? 12 : 32;  // as the architectures have it
}

using Seen = std::function<bool(int64_t i, int64_t j)>;

Seen seen_through(const Json& pattern, int64_t grid_columns, int64_t layer) {
  const auto number = [&](const char* key, int64_t otherwise) { return pattern.value(key, otherwise); };
  const std::string kind = pattern.value("kind", "");
  if (kind == "causal") return [](int64_t i, int64_t j) { return j <= i; };
  if (kind == "window") {
    const int64_t before = number("before", 0), after = number("after", before), globals = number("globals", 0);
    return [=](int64_t i, int64_t j) { return i < globals || j < globals || (j >= i - before && j <= i + after); };
  }
  if (kind == "chunks") {
    const int64_t size = number("size", 1), shift = pattern.value("shifted", false) && layer % 2 == 1 ? size / 2 : 0;
    return [=](int64_t i, int64_t j) { return (i + shift) / size == (j + shift) / size; };
  }
  if (kind == "dilated") return [step = number("step", 1)](int64_t i, int64_t j) { return (j - i) % step == 0; };
  const int64_t rows = number("rows", 0), columns = number("columns", rows), width = grid_columns;  // grid_window
  return [=](int64_t i, int64_t j) { return std::abs(i / width - j / width) <= rows && std::abs(i % width - j % width) <= columns; };
}

// Position-only Gaussian heads on a grid, whose map is a product of two (attention/separable.h).
bool separable(const Config& own) {
  const bool gaussian =
      own.has("positions") && (own.json().at("positions") == "gaussian" || own.json().at("positions") == Json::array({"gaussian"}));
  return gaussian && own.word("attention", "soft") == "soft" && !own.has("pattern") && !own.has("soft_cap");
}

}  // namespace

std::vector<std::string> name_words(const std::string& name) {
  std::vector<std::string> words{""};
  for (char letter : name) {
    if (letter == '.')
      words.emplace_back();
    else
      words.back() += letter;
  }
  return words;
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* each) { return word == each; });
}

std::string attention_path(const std::string& name) {
  std::string path;
  for (const std::string& word : name_words(name)) {
    path += (path.empty() ? "" : ".") + word;
    if (is_one_of(word, {"attention", "attn", "self_attn", "encoder_attn"})) return path == name ? "" : path;
  }
  return "";
}

void AttentionShape::see(const ModelPart& part) {
  const Shape& shape = part.parameters[0].tensor.shape();
  if (shape.rank() != 2) return;
  const std::vector<std::string> words = name_words(part.name);
  const std::string& last = words.back();
  if (std::find(words.begin(), words.end(), "positions") != words.end()) {
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

int64_t seen_pairs(int64_t N, bool causal, const Json& pattern, int64_t columns, int64_t layer) {
  if (pattern.is_null()) return causal ? checked_multiply(N, N + 1) / 2 : checked_multiply(N, N);
  std::vector<Seen> all;
  for (const Json& each : pattern.is_array() ? pattern : Json::array({pattern})) all.push_back(seen_through(each, columns, layer));
  int64_t seen = 0;
  for (int64_t i = 0; i < N; ++i)
    for (int64_t j = 0; j < (causal ? i + 1 : N); ++j)
      seen += std::all_of(all.begin(), all.end(), [&](const Seen& seen_by) { return seen_by(i, j); });
  return seen;
}

AttentionWork attention_work(const AttentionShape& at, const Config& config, const std::string& path) {
  const Config own = config.below("heed");
  const std::string kind = own.word("attention", "soft");
  const int64_t H = heads_of(config, path);
  const auto plain = [](int64_t forward) { return AttentionWork{forward, 2 * forward}; };
  if (at.self && kind == "kernel") {  // sums of features x values, then features of queries times those
    const bool random = own.word("features", "elu") == "random";
    const int64_t F = (random ? 4 : 1) * at.query, E = at.output / H;
    return plain(checked_multiply(at.N + at.M, checked_multiply(F, E + (random ? at.query / H : 0))) + checked_multiply(at.N, F));
  }
  if (at.self && kind == "channel") return plain(checked_multiply(at.N, checked_multiply(at.query + at.output, at.query / H)));
  if (at.self && at.query == 0 && !at.drops && separable(own)) {  // along rows, then along columns; the first once more in the gradient
    const int64_t all = checked_multiply(at.N, at.output);
    return {checked_multiply(all, at.grid[0] + at.grid[1]), checked_multiply(all, 3 * at.grid[0] + 2 * at.grid[1])};
  }
  int64_t pairs = checked_multiply(at.N, at.M);
  if (at.self && kind == "pooled") {
    const int64_t r = own.size("reduction", 2);
    pairs = checked_multiply(at.N, ((at.grid[0] + r - 1) / r) * ((at.grid[1] + r - 1) / r));
  } else if (at.self && at.N == at.M) {
    const Json pattern = own.has("pattern") ? own.json().at("pattern") : Json();
    pairs = seen_pairs(at.N, at.causal, pattern, std::max<int64_t>(at.grid[1], 1), layer_in(path));
  }
  // Backward: scores again, and from them and the values the gradients of all four. Hard attention asks for soft rows first.
  const int64_t scores = at.query + (at.relative ? at.query : 0), again = at.self && kind == "hard" ? scores + at.output : 0;
  return {checked_multiply(pairs, scores + at.output), checked_multiply(pairs, 3 * scores + 2 * at.output + again)};
}

}  // namespace heed
