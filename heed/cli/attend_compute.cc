// Three kinds of attention on validated tensors. The steps of softmax are numbered in the help.
#include "heed/cli/attend_compute.h"

#include <cmath>
#include <iostream>
#include <sstream>

#include "heed/attention/channel_attention.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/pooled_keys.h"
#include "heed/attention/probabilities.h"
#include "heed/models/choices.h"
#include "heed/ops/ops.h"

namespace heed::cli {
namespace {

// q: (B, H, N, D), k: (B, G, M, D), v: (B, G, M, E)
struct Operands {
  Tensor q, k, v;
};

void check_grid(const AttentionSizes& z, const AttendOptions& o) {
  if (!o.grid) return;
  const auto [rows, columns] = *o.grid;
  const int64_t places = rows * columns, end = o.first_query + z.N;
  check<UsageError>(z.M == places, "attend: grid=", rows, "x", columns, " has ", places, " cells, expected one for each of the ", z.M,
                    " keys");
  if (o.pool) return;  // queries need not be on the grid
  check<UsageError>(o.first_query > 0 || z.N == places, "attend: grid=", rows, "x", columns, " has ", places,
                    " cells, expected one for each of the ", z.N, " queries");
  check<UsageError>(end <= places, "attend: grid=", rows, "x", columns, " has ", places, " cells, expected ", end,
                    " or more, as the first of ", z.N, " queries is at ", o.first_query);
}

Tensor lengths_of(AttendFile& file, const AttendOptions& o) {
  const AttentionSizes& z = file.sizes();
  if (o.lengths.empty() && !file.has("lengths")) return {};
  check<UsageError>(o.lengths.empty() || !file.has("lengths"),
                    "attend: lengths is an option and a tensor of the file, expected one of them");
  check<UsageError>(o.lengths.empty() || std::ssize(o.lengths) == z.B, "attend: ", o.lengths.size(), " lengths for ", z.B, " items");
  const Tensor lengths = o.lengths.empty() ? file.lengths() : Tensor::from(o.lengths, {z.B}, kCpu);
  for (const int64_t length : lengths.to_vector<int64_t>()) {
    if (length >= 0 && length <= z.M) continue;
    if (o.lengths.empty()) file.refuse("lengths", " holds ", length, ", expected 0 to M = ", z.M);
    fail<UsageError>("attend: a length of ", length, ", expected 0 to M = ", z.M);
  }
  return lengths;
}

Operands operands(AttendFile& file, const AttendOptions& o) {
  Operands x{file.queries_keys_values("q"), file.queries_keys_values("k"), file.queries_keys_values("v")};
  check_grid(file.sizes(), o);
  if (o.pool) {
    x.k = pooled_keys(x.k, *o.grid, *o.pool);
    x.v = pooled_keys(x.v, *o.grid, *o.pool);
    file.set_keys(x.k.size(2));
  }
  return x;
}

// Identity matrices as values, (B, G, width, width): the output of attention is then its weights.
Tensor identity_values(int64_t B, int64_t G, int64_t width) {
  std::vector<float> values(static_cast<size_t>(checked_multiply(width, width)));
  for (size_t i = 0; i < values.size(); i += static_cast<size_t>(width) + 1) values[i] = 1;
  return contiguous(expand(Tensor::from(values, {1, 1, width, width}, kCpu), {B, G, width, width}));
}

void check_selection(const AttendOptions& o, int64_t heads, int64_t rows) {
  const auto check_all = [](const std::vector<int64_t>& which, int64_t count, const char* name) {
    for (const int64_t index : which)
      check<UsageError>(index < count, "attend: ", name, "=", index, ", but there are only ", count, ", counted from 0");
  };
  check_all(o.heads, heads, "heads");
  check_all(o.rows, rows, "rows");
}

// x: (B, H, N, M) -> the selected heads and rows
Tensor selected(const Tensor& x, const AttendOptions& o) {
  check_selection(o, x.size(1), x.size(2));
  const auto choose = [](const Tensor& from, int axis, const std::vector<int64_t>& which) {
    return which.empty() ? from : index_select(from, axis, Tensor::from(which, {std::ssize(which)}, kCpu));
  };
  return choose(choose(x, 1, o.heads), 2, o.rows);
}

// A term that an option or a tensor of the file selects.
std::optional<Term> term_in(AttendFile& file, const AttendOptions& o, const TermInfo& info) {
  const auto given = o.terms.find(info.name);
  if (info.parameters.empty() ? given == o.terms.end() : !file.has_term(info)) return {};
  TermInput input{.values = given == o.terms.end() ? TermValues() : given->second, .tensors = {}, .place = {.tokens = file.sizes().M}};
  input.place.layer = 1;  // the settings of a model's second layer: `shifted` shifts the chunks of odd layers
  for (const TermParameter& each : info.parameters) input.tensors.push_back(file.per_head(each.file_name, each.sizes, input.values));
  if (info.needs_grid) {
    std::ostringstream what;
    if (info.parameters.empty())
      what << info.name;
    else
      what << info.parameters[0].file_name << " of shape " << file.numbers(info.parameters[0].file_name).shape();
    check<UsageError>(o.grid.has_value(), "attend: ", what.str(), " needs grid=...");
    check<UsageError>(!o.pool, "attend: pool with ", what.str(), ": pooled keys have no position on the grid");
    input.place.rows = (*o.grid)[0];
    input.place.columns = (*o.grid)[1];
  }
  complete_settings(info, input.values, input.place);
  return make_term(info, input);
}

void add_terms(AttendFile& file, const AttendOptions& o, TermUse use, std::vector<Term>& terms) {
  for (const TermInfo& info : term_infos())
    if (info.use == use)
      if (const std::optional<Term> term = term_in(file, o, info)) terms.push_back(*term);
}

// --- softmax ------------------------------------------------------------------------------------------------------

// A float mask of only 0 and 1 was probably meant as a boolean mask.
void warn_of_float_mask(const Tensor& mask) {
  bool ones = false;
  for (const float x : mask.to_vector<float>()) {
    if (x != 0 && x != 1) return;
    ones = ones || x == 1;
  }
  if (ones)
    std::cerr
        << "heed: attend: mask holds only 0 and 1, but as floats, which are added to the scores. For a boolean mask store bool or u8\n";
}

void add_masks(AttendFile& file, const AttendOptions& o, std::vector<Term>& terms) {
  const AttentionSizes& z = file.sizes();
  const Shape all{z.B, z.H, z.N, z.M};
  if (file.has("mask") && file.is_floating("mask")) {
    terms.push_back(Bias{file.addend("mask")});
    warn_of_float_mask(file.addend("mask"));
  }
  if (file.has("mask") && !file.is_floating("mask")) terms.push_back(Mask{file.keep_mask("mask", all, all)});
  if (file.has("key_mask")) terms.push_back(Mask{file.keep_mask("key_mask", {z.B, z.M}, {z.B, 1, 1, z.M})});
  if (const Tensor lengths = lengths_of(file, o); lengths.defined()) terms.push_back(KeyLengths{lengths});
  if (o.causal) terms.push_back(Causal{o.offset});
  add_terms(file, o, TermUse::pattern, terms);
  if (file.has("block_pattern")) {
    const auto count = [&](int64_t tokens) { return (tokens + *o.block - 1) / *o.block; };
    const Shape blocks{z.H, count(o.first_query + z.N), count(z.M)};
    terms.push_back(BlockSparse{file.keep_mask("block_pattern", blocks, blocks), *o.block});
  }
}

// In the order of the list of terms.
void add_addends(AttendFile& file, const AttendOptions& o, std::vector<Term>& terms) {
  for (const TermInfo& info : term_infos()) {
    if (info.name == "bias" && file.has("bias")) terms.push_back(Bias{file.addend("bias")});
    if (info.use != TermUse::position) continue;
    if (const std::optional<Term> term = term_in(file, o, info)) terms.push_back(*term);
    if (info.name == "alibi" && o.alibi) {
      const int64_t H = file.sizes().H;
      check<UsageError>(!file.has("slopes"), "attend: alibi=true and the tensor slopes, expected one of them");
      std::vector<float> slopes;
      for (int64_t h = 1; h <= H; ++h) slopes.push_back(std::exp2(-8 * static_cast<float>(h) / static_cast<float>(H)));
      terms.push_back(Alibi{Tensor::from(slopes, {H}, kCpu)});
    }
  }
}

// -> the queries and options for attention(): all inputs of softmax other than k and v
std::pair<Tensor, AttentionOptions> scores_of(AttendFile& file, const AttendOptions& o, const Tensor& q) {
  const AttentionSizes& z = file.sizes();
  check<UsageError>(!o.beta || !file.has("beta"), "attend: beta is an option and a tensor of the file, expected one of them");
  const float number = file.has("beta") ? 1.0f : o.beta.value_or(1 / std::sqrt(static_cast<float>(std::max<int64_t>(z.D, 1))));
  const Tensor per_head = file.has("beta") ? reshape(file.per_head("beta", {}), {1, z.H, 1, 1}) : Tensor();
  const auto biased_query = [&](const char* name) {  // per-head beta times (q + u); the scalar beta is applied by attention()
    const Tensor x = file.has(name) ? q + reshape(file.per_head(name, {{z.D}}), {1, z.H, 1, z.D}) : q;
    return per_head.defined() ? x * per_head : x;
  };
  AttentionOptions options{.beta = number, .hard = o.hard, .dropout = o.dropout, .first_query = o.first_query};
  if (file.has("relative_keys"))
    options.terms.push_back(RelativeKeys{biased_query("w") * number, file.per_head("relative_keys", {{1, 2, "reach"}, {z.D}})});
  add_addends(file, o, options.terms);
  add_terms(file, o, TermUse::key, options.terms);
  add_masks(file, o, options.terms);
  return {biased_query("u"), options};
}

void add_softmax(AttendFile& file, const AttendOptions& o, NamedTensors& results) {
  const Operands x = operands(file, o);
  auto [q, options] = scores_of(file, o, x.q);
  Rng rng(static_cast<uint64_t>(o.seed));
  options.rng = &rng;
  results.emplace_back("out", attention(q, x.k, x.v, options));
  if (!o.probabilities) return;
  check_selection(o, file.sizes().H, file.sizes().N);
  results.emplace_back("probabilities", attention_probabilities(q, x.k, options, o.heads, o.rows));
}

// --- linear and channel ---------------------------------------------------------------------------------------------------

void add_linear(AttendFile& file, const AttendOptions& o, NamedTensors& results) {
  const Operands x = operands(file, o);
  const AttentionSizes& z = file.sizes();
  LinearAttentionOptions options{.causal = o.causal, .beta = o.beta, .lengths = lengths_of(file, o), .quadratic = o.quadratic};
  check<UsageError>(!o.causal || z.N == z.M, "attend: kind=linear causal=true with ", z.N, " queries and ", z.M,
                    " keys, expected the same number");
  options.map = static_cast<FeatureMap>(choices("features").find(o.features)->value);
  check<UsageError>(options.map == FeatureMap::random || !file.has("projection"), "attend: features=", o.features,
                    " with the tensor projection, expected features=random");
  if (file.has("projection")) {
    check<UsageError>(!o.random_features, "attend: random_features and the tensor projection, expected one of them");
    options.projection = file.numbers("projection");
    if (options.projection.rank() != 2 || options.projection.size(0) < 1 || options.projection.size(1) != z.D)
      file.refuse_shape("projection");
  } else if (options.map == FeatureMap::random) {
    Rng rng(static_cast<uint64_t>(o.seed));
    options.projection = random_projection(o.random_features.value_or(4 * z.D), z.D, rng);
  }
  results.emplace_back("out", linear_attention(x.q, x.k, x.v, options));
  if (!o.probabilities) return;
  const NoGrad no_grad;
  results.emplace_back("probabilities", selected(linear_attention(x.q, x.k, identity_values(z.B, z.G, z.M), options), o));
}

void add_channel(AttendFile& file, const AttendOptions& o, NamedTensors& results) {
  const Operands x = operands(file, o);
  check<UsageError>(!o.beta || !file.has("beta"), "attend: beta is an option and a tensor of the file, expected one of them");
  ChannelOptions options{.beta = o.beta};
  Tensor q = x.q;
  if (file.has("beta")) {
    q = q * reshape(file.per_head("beta", {}), {1, q.size(1), 1, 1});
    options.beta = 1.0f;
  }
  results.emplace_back("out", channel_attention(q, x.k, x.v, options));
  if (!o.probabilities) return;
  const NoGrad no_grad;
  const Tensor map = channel_attention(q, x.k, identity_values(q.size(0), q.size(1), x.k.size(3)), options);
  results.emplace_back("probabilities", selected(transpose(map, 2, 3), o));
}

}  // namespace

NamedTensors attend(AttendFile& file, const AttendOptions& o) {
  NamedTensors results;
  if (o.kind == AttendKind::softmax) add_softmax(file, o, results);
  if (o.kind == AttendKind::linear) add_linear(file, o, results);
  if (o.kind == AttendKind::channel) add_channel(file, o, results);
  for (auto& [name, tensor] : results) tensor = without_axes(tensor, file.rank());
  if (file.has("grad_out")) {
    const Tensor out = results.front().second, g = file.numbers("grad_out");
    if (g.shape() != out.shape()) file.refuse("grad_out", " has shape ", g.shape(), ", expected that of out, ", out.shape());
    backward(out, g);
    for (const auto& [name, gradient] : file.gradients()) results.emplace_back(name, gradient);
  }
  return results;
}

}  // namespace heed::cli
