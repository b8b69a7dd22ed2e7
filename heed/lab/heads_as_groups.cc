// L6: heads of attention and groups of a convolution partition channels in the same way.
#include <algorithm>
#include <cmath>

#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/nn/multi_head.h"

namespace heed::lab {
namespace {

constexpr int64_t kKernelSide = 3;  // the side of the kernel

struct GroupsOptions {
  int64_t channels = 16, heads = 4, side = 8;
  uint64_t seed = 1;
};

void declare_groups(Settings& settings, GroupsOptions& options, Size) {
  settings.add("channels", options.channels, "of every token", {.least = 2, .most = 128});
  settings.add("heads", options.heads, "and groups; they divide the channels", {.least = 2, .most = 256});
  settings.add("side", options.side, "of the grid of tokens", {.least = 4, .most = 24});
  settings.add("seed", options.seed, "of tokens and weights");
}

Tensor part_of_rows(const Tensor& x, int64_t part, int64_t size) { return slice(x, 0, part * size, (part + 1) * size); }

MultiHeadAttention dense_heads(int64_t channels, int64_t heads, uint64_t seed) {
  Params params(seed);
  Initializers initial = initializer::vit();
  initial.weight = initial.residual = initializer::lecun_normal();
  MultiHeadAttention out = make_multi_head(Scope(params, initial), {.width = channels, .heads = heads});
  Rng rng(seed, 1000);
  for (Linear* linear : {&out.query, &out.key, &out.value, &out.output}) {
    linear->weight = linear->weight.detach();
    linear->bias = random_normal({channels}, 0, 0.5f, rng, kCpu);
  }
  return out;
}

// The same layer with block-diagonal weights: every head reads and writes only its own channels.
MultiHeadAttention heads_of_groups(MultiHeadAttention layer) {
  const int64_t C = layer.value.weight.size(1), D = C / layer.heads;
  std::vector<float> keep;
  for (int64_t i = 0; i < C * C; ++i) keep.push_back(i / C / D == i % C / D ? 1 : 0);
  for (Linear* linear : {&layer.query, &layer.key, &layer.value, &layer.output})
    linear->weight = linear->weight * Tensor::from(keep, {C, C}, kCpu);
  return layer;
}

// One head of heads_of_groups as a separate layer on its channels.
MultiHeadAttention one_group(const MultiHeadAttention& layer, int64_t h) {
  const int64_t D = layer.value.weight.size(1) / layer.heads;
  MultiHeadAttention out;
  const auto cut = [&](const Linear& linear) {
    Linear part;
    part.weight = slice(part_of_rows(linear.weight, h, D), 1, h * D, (h + 1) * D), part.bias = part_of_rows(linear.bias, h, D);
    return part;
  };
  out.query = cut(layer.query), out.key = cut(layer.key), out.value = cut(layer.value), out.output = cut(layer.output);
  return out;
}

// sum over heads of softmax(A_h) Z W_h + b with W_h = W_v W_o of the head. x: (1, N, C)
Tensor sum_of_heads(const MultiHeadAttention& layer, const Tensor& x) {
  const int64_t C = x.size(2), D = C / layer.heads;
  const auto alone = [](const Tensor& y) { return reshape(y, {1, 1, y.size(1), y.size(2)}); };
  Tensor out = reshape(layer.output.bias, {1, 1, C});
  for (int64_t h = 0; h < layer.heads; ++h) {
    const auto head = [&](const Linear& linear) {
      return heed::linear(x, part_of_rows(linear.weight, h, D), part_of_rows(linear.bias, h, D));
    };
    const Tensor joined = transpose(part_of_rows(transpose(layer.output.weight, 0, 1), h, D), 0, 1);  // (C, D)
    const Tensor values =
        heed::linear(x, matmul(joined, part_of_rows(layer.value.weight, h, D)), heed::linear(part_of_rows(layer.value.bias, h, D), joined));
    out = out + reshape(attention(alone(head(layer.query)), alone(head(layer.key)), alone(values)), x.shape());
  }
  return out;
}

Tensor as_grid(const Tensor& tokens, int64_t side) { return reshape(transpose(tokens, 1, 2), {1, tokens.size(2), side, side}); }
Tensor as_tokens(const Tensor& grid) { return transpose(reshape(grid, {1, grid.size(1), -1}), 1, 2); }

// The blocks of a block-diagonal weight (C, C) as the kernel of a grouped convolution: (C, C / groups, 1, 1)
Tensor blocks_as_kernel(const Tensor& weight, int64_t groups) {
  const int64_t C = weight.size(0), D = C / groups;
  Tensors blocks;
  for (int64_t g = 0; g < groups; ++g) blocks.push_back(slice(part_of_rows(weight, g, D), 1, g * D, (g + 1) * D));
  return reshape(concat(blocks, 0), {C, D, 1, 1});
}

// Attention with 9 heads per group that equals a grouped 3x3 convolution away from the border. kernel: (C, C / G, 3, 3)
MultiHeadAttention heads_for_kernel(const Tensor& kernel, int64_t groups, int64_t side) {
  const int64_t C = kernel.size(0), D = kernel.size(1), heads = groups * kKernelSide * kKernelSide;
  std::vector<float> centers, value(static_cast<size_t>(heads * D * C)), output(static_cast<size_t>(C * heads * D));
  const std::vector<float> taps = kernel.to_vector<float>();
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t group = h / (kKernelSide * kKernelSide), tap = h % (kKernelSide * kKernelSide),
                  down = tap / kKernelSide - kKernelSide / 2, along = tap % kKernelSide - kKernelSide / 2;
    centers.push_back(static_cast<float>(-down)), centers.push_back(static_cast<float>(-along));  // query - key
    for (int64_t d = 0; d < D; ++d) {
      output[static_cast<size_t>((group * D + d) * heads * D + h * D + d)] = 1;  // channel d of the head is added to channel d of its group
      for (int64_t c = 0; c < D; ++c)
        value[static_cast<size_t>((h * D + d) * C + group * D + c)] =
            taps[static_cast<size_t>(((group * D + d) * D + c) * kKernelSide * kKernelSide + tap)];
    }
  }
  MultiHeadAttention out{.heads = heads, .key_heads = heads};
  out.value.weight = Tensor::from(value, {heads * D, C}, kCpu);
  out.output.weight = Tensor::from(output, {C, heads * D}, kCpu);
  out.positions = {
      Term(Gaussian2d{.alpha = Tensor::full({heads}, 100, kCpu), .center = Tensor::from(centers, {heads, 2}, kCpu), .width = side})};
  return out;
}

// Influence of input channel c' on output channel c: RMS change when c' is replaced by random numbers. -> (C, C)
template <class Layer>
Tensor influence_of_channels(const Layer& layer, const Tensor& x, Rng& rng) {
  const int64_t N = x.size(1), C = x.size(2);
  const Tensor before = layer(x), other = random_normal({1, N, C}, 0, 1, rng, kCpu);
  Tensors columns;
  for (int64_t c = 0; c < C; ++c) {
    std::vector<float> one(static_cast<size_t>(C));
    one[static_cast<size_t>(c)] = 1;
    const Tensor moved = layer(x + (other - x) * Tensor::from(one, {C}, kCpu)) - before;
    columns.push_back(sqrt(mean(moved * moved, {0, 1})));
  }
  return stack(columns, 1);
}

double largest_across_groups(const Tensor& influence, int64_t groups) {
  const int64_t C = influence.size(0), D = C / groups;
  const std::vector<double> values = values_of(influence);
  double out = 0;
  for (int64_t i = 0; i < C * C; ++i)
    if (i / C / D != i % C / D) out = std::max(out, values[static_cast<size_t>(i)]);
  return out;
}

double nonzero_weights(const MultiHeadAttention& layer) {
  double out = 0;
  for (const Linear* linear : {&layer.query, &layer.key, &layer.value, &layer.output})
    for (const double each : values_of(linear->weight)) out += each != 0;
  return out;
}

Report run_groups(const GroupsOptions& options, const ProgressCallback&) {
  const int64_t C = options.channels, H = options.heads, side = options.side, D = C / H;
  check<UsageError>(C % H == 0, "lab: ", H, " heads do not divide ", C, " channels");
  Rng rng(options.seed);
  const Tensor x = random_normal({1, side * side, C}, 0, 1, rng, kCpu);
  const MultiHeadAttention dense = dense_heads(C, H, options.seed), grouped = heads_of_groups(dense);
  Tensors parts;
  for (int64_t h = 0; h < H; ++h) parts.push_back(one_group(grouped, h)(slice(x, 2, h * D, (h + 1) * D)));

  // The map of every head is the identity: what is left is the linear part.
  const Tensor kernel = blocks_as_kernel(matmul(grouped.output.weight, grouped.value.weight), H);
  const Tensor bias = grouped.output(grouped.value.bias);
  const auto convolution = [&](const Tensor& tokens) { return as_tokens(conv2d(as_grid(tokens, side), kernel, bias, {.groups = H})); };
  const Tensor own = grouped(x, {.terms = {Window{}}});

  const Tensor taps =
      random_normal({C, D, kKernelSide, kKernelSide}, 0, 1 / std::sqrt(static_cast<float>(D * kKernelSide * kKernelSide)), rng, kCpu);
  const auto inside = [&](const Tensor& tokens) { return slice(slice(as_grid(tokens, side), 2, 1, side - 1), 3, 1, side - 1); };
  const Tensor spatial = inside(as_tokens(conv2d(as_grid(x, side), taps, {}, {.padding = {1, 1}, .groups = H})));

  const auto across = [&](const auto& layer, int64_t groups) {
    return largest_across_groups(influence_of_channels(layer, x, rng), groups);
  };
  Report report;
  report.statement =
      "A layer with several heads is the sum of its heads, each with its own map, like the sum over filters in a convolution. Heads that "
      "read and write only their own channels are separate layers on groups of channels. If their maps are the identity, or one shifted "
      "one-hot map per tap, they are a grouped convolution.";
  report.measured = {
      at_most("layer of all heads: distance from the sum over heads of A Z W + b", 1e-5,
              largest_difference(dense(x), sum_of_heads(dense, x))),
      at_most("block-diagonal heads: distance from separate layers on groups of channels", 1e-5,
              largest_difference(grouped(x), concat(parts, 2))),
      at_most("block-diagonal heads, identity map: distance from the grouped 1x1 convolution", 1e-5,
              largest_difference(own, convolution(x))),
      at_most("9 heads per group, shifted maps: distance from the grouped 3x3 convolution, inside", 1e-5,
              largest_difference(inside(heads_for_kernel(taps, H, side)(x)), spatial)),
      close_to("nonzero weights, block-diagonal / dense", 1 / static_cast<double>(H), nonzero_weights(grouped) / nonzero_weights(dense),
               1e-9),
      at_most("influence across groups, block-diagonal heads", 0, across(grouped, H)),
      at_most("influence across groups, grouped convolution", 0, across(convolution, H)),
      at_least("influence across groups, dense heads", 0.01, across(dense, H)),
  };
  Figure film{.title = "Which channel influences which",
              .caption =
                  "RMS change of each output channel when an input channel is replaced by random numbers. One group is dense, as many "
                  "groups as channels is depthwise.",
              .parameter = "heads and groups"};
  for (int64_t heads = 1; heads <= C; ++heads) {
    if (C % heads != 0) continue;
    const MultiHeadAttention all = dense_heads(C, heads, options.seed), blocks = heads_of_groups(all);
    const Tensor one = blocks_as_kernel(matmul(blocks.output.weight, blocks.value.weight), heads);
    const auto conv = [&](const Tensor& tokens) { return as_tokens(conv2d(as_grid(tokens, side), one, {}, {.groups = heads})); };
    Frame frame{.value = std::to_string(heads)};
    frame.plots.push_back({"dense heads", heat_map(influence_of_channels(all, x, rng), "output channel", "input channel")});
    frame.plots.push_back({"block-diagonal heads", heat_map(influence_of_channels(blocks, x, rng), "output channel", "input channel")});
    frame.plots.push_back({"grouped convolution", heat_map(influence_of_channels(conv, x, rng), "output channel", "input channel")});
    for (Plot& plot : frame.plots) {  // scale each plot to its own maximum: only the block structure matters
      HeatMap& map = std::get<HeatMap>(plot.body);
      map.least = 0, map.most = *std::max_element(map.values.begin(), map.values.end());
    }
    film.frames.push_back(std::move(frame));
  }
  report.figures.push_back(std::move(film));
  Table table{.title = "Weights by the number of heads and groups",
              .columns = {"heads and groups", "dense heads: 4 C²", "block-diagonal heads: 4 C² / H", "grouped 1x1 convolution: C² / H"}};
  for (int64_t heads = 1; heads <= C; ++heads) {
    if (C % heads != 0) continue;
    const MultiHeadAttention all = dense_heads(C, heads, options.seed), blocks = heads_of_groups(all);
    table.rows.push_back({static_cast<double>(heads), nonzero_weights(all), nonzero_weights(blocks),
                          static_cast<double>(blocks_as_kernel(blocks.value.weight, heads).count())});
  }
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace

Experiment heads_as_groups() {
  return {
      .number = "L6",
      .name = "heads-as-groups",
      .topic = Topic::expression,
      .title = "Heads are to attention what groups are to convolution",
      .claim =
          "Heads that use only their own channels have the block-diagonal structure of a grouped convolution, and compute the same "
          "numbers.",
      .formula =
          R"(\text{heads}(Z) = \sum_h \softmax(A^h) Z W^h + b, \quad W^h = W_v^h W_o^h, \quad A^h = I \Rightarrow Z \, \operatorname{diag}(W^1, \ldots, W^H) + b)",
      .setup =
          "A multi-head layer with random weights is compared with the sum of its heads. Then every head is restricted to its own "
          "channels, and the layer is compared with separate layers and with grouped convolutions. Influence is measured by replacing one "
          "input channel with random numbers.",
      .prepare = prepared(declare_groups, run_groups)};
}

}  // namespace heed::lab
