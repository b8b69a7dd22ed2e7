// Attention, forward and backward, with the terms that learn. Backward gives the gradients of q, k, v and of what a term learns.
#include "heed/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "bench/gpu.h"
#include "heed/attention/separable.h"
#include "heed/core/random.h"
#include "heed/ops/ops.h"

namespace heed::bench {
namespace {

enum class Scores { plain, causal, gaussian, relative, relative_2d };

const char* scores_name(Scores scores) {
  switch (scores) {
    case Scores::plain: return "plain";
    case Scores::causal: return "causal";
    case Scores::gaussian: return "gaussian";
    case Scores::relative: return "relative";
    case Scores::relative_2d: return "relative_2d";
  }
  return "?";
}

struct AttentionCase {
  Scores scores;
  int64_t B, H, N, D;
  DType dtype = DType::bf16;

  int64_t width() const { return static_cast<int64_t>(std::sqrt(static_cast<double>(N))); }  // of the grid
};

const AttentionCase kCases[] = {
    {Scores::plain, 16, 12, 1024, 64},
    {Scores::causal, 16, 12, 1024, 64},
    {Scores::gaussian, 16, 12, 1024, 64},
    {Scores::relative, 16, 12, 1024, 64},
    {Scores::relative_2d, 16, 12, 1024, 64},
    {Scores::plain, 4, 16, 4096, 128},
    {Scores::causal, 4, 16, 4096, 128},
    {Scores::gaussian, 4, 16, 4096, 128},
    {Scores::plain, 1024, 3, 65, 64},
    {Scores::plain, 64, 12, 197, 64},
    {Scores::plain, 1024, 6, 65, 32},
    {Scores::plain, 16, 24, 1024, 32},
    {Scores::gaussian, 100, 9, 65, 400},
    {Scores::gaussian, 100, 9, 256, 400},  // as many tokens as T6 has, with content
    {Scores::plain, 16, 12, 1024, 64, DType::f32},
};

AttentionCase smaller(const AttentionCase& c) {
  return {c.scores, std::min<int64_t>(c.B, 2), std::min<int64_t>(c.H, 3), c.N > 65 ? 64 : c.N, c.D, c.dtype};
}

// q, k, v, and what the term learns.
Tensors inputs_of(const AttentionCase& c, const GpuSetup& setup) {
  const Shape x{c.B, c.H, c.N, c.D};
  Tensors inputs{gpu_random(x, setup, c.dtype), gpu_random(x, setup, c.dtype), gpu_random(x, setup, c.dtype)};
  const int64_t W = c.width(), R = (c.N + W - 1) / W;
  if (c.scores == Scores::gaussian) {
    Rng rng(3);
    inputs.push_back(random_uniform({c.H}, 0.01f, 0.2f, rng, setup.device));
    inputs.push_back(random_normal({c.H, 2}, 0, 2, rng, setup.device));
  }
  if (c.scores == Scores::relative) inputs.push_back(gpu_random({c.H, 2 * c.N - 1}, setup, DType::f32));
  if (c.scores == Scores::relative_2d) inputs.push_back(gpu_random({c.H, 2 * R - 1, 2 * W - 1}, setup, DType::f32));
  return inputs;
}

Function function_of(const AttentionCase& c) {
  return [scores = c.scores, W = c.width()](const Tensors& t) {
    AttentionOptions options;
    if (scores == Scores::causal) options.terms = {Causal{}};
    if (scores == Scores::gaussian) options.terms = {Gaussian2d{t[3], t[4], W}};
    if (scores == Scores::relative) options.terms = {RelativeBias{t[3]}};
    if (scores == Scores::relative_2d) options.terms = {RelativeBias2d{t[3], W}};
    return attention(t[0], t[1], t[2], options);
  };
}

GpuLine attention_line(const AttentionCase& c, bool back, const GpuSetup& setup) {
  const double tensor = static_cast<double>(count({c.B, c.H, c.N, c.D})), keys = static_cast<double>(c.N);
  const double products = (back ? 5 : 2) * (c.scores == Scores::causal ? 0.5 : 1.0);
  const double tensors = back ? 8 : 4;  // read q, k, v, write out; read these and the gradient, write three gradients
  const std::string kind = std::string(scores_name(c.scores)) + (c.dtype == DType::f32 ? "-f32" : "");
  return {.name = name_of(std::string("attention/") + (back ? "backward/" : "forward/") + kind, {c.B, c.H, c.N, c.D}),
          .make =
              [=] {
                return back ? gpu_backward_call(inputs_of(c, setup), function_of(c), setup)
                            : gpu_forward_call(inputs_of(c, setup), function_of(c));
              },
          .flops = 2 * products * tensor * keys,
          .bytes = tensors * tensor * static_cast<double>(bytes_of(c.dtype))};
}

// Maps over the rows and the columns of a grid applied to values that all heads share, as T6 does: forward reads the values and writes
// the results, backward reads the values and the gradient and writes the gradient of the values.
void add_separable_lines(GpuLines& lines, int64_t images, const GpuSetup& setup) {
  const int64_t B = setup.tiny ? 2 : images, H = setup.tiny ? 3 : 9, side = setup.tiny ? 4 : 16, D = setup.tiny ? 32 : 400;
  const auto inputs = [=] {
    const auto map = [&] { return softmax(gpu_random({H, side, side}, setup, DType::f32)); };
    return Tensors{map(), map(), gpu_random({B, 1, side * side, D}, setup)};
  };
  const auto apply = [](const Tensors& t) { return separable_attention(t[0], t[1], t[2]); };
  const double values = static_cast<double>(count({B, side * side, D})), bytes = 2, heads = static_cast<double>(H);
  const Shape sizes{B, H, side * side, D};
  lines.push_back({.name = name_of("separable/forward", sizes),
                   .make = [=] { return gpu_forward_call(inputs(), apply); },
                   .bytes = bytes * values * (heads + 1)});
  lines.push_back({.name = name_of("separable/backward", sizes),
                   .make = [=] { return gpu_backward_call(inputs(), apply, setup); },
                   .bytes = bytes * values * (heads + 2)});
}

}  // namespace

GpuLines gpu_attention_lines(const GpuSetup& setup) {
  GpuLines lines;
  for (const int64_t images : setup.tiny ? std::vector<int64_t>{2} : std::vector<int64_t>{100, 1000})
    add_separable_lines(lines, images, setup);
  for (const AttentionCase& c : kCases)
    for (const bool back : {false, true}) lines.push_back(attention_line(setup.tiny ? smaller(c) : c, back, setup));
  return lines;
}

}  // namespace heed::bench
