// L23: strided convolutions as attention: only the queries on the strided grid are evaluated.
#include <algorithm>

#include "heed/lab/convolution_as_attention.h"
#include "heed/lab/experiments.h"
#include "heed/lab/images.h"
#include "heed/lab/measure.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

constexpr int64_t kStrideSide = 40;  // side of the image in the figure

struct StrideOptions {
  int64_t kernel = 3, strides = 4, side = 20, channels = 3;
  float alpha = 40;
  uint64_t seed = 1;
};

void declare_stride(Settings& settings, StrideOptions& options, Size size) {
  if (size == Size::full) options.side = 64, options.strides = 8, options.channels = 16;
  settings.add("kernel", options.kernel, "the side of the kernel", {.least = 1, .most = 11});
  settings.add("strides", options.strides, "from 1 to this", {.least = 2, .most = 16});
  settings.add("side", options.side, "of the random image", {.least = 12, .most = 96});
  settings.add("channels", options.channels, "of the image", {.least = 1, .most = 256});
  settings.add("alpha", options.alpha, "sharpness of the heads", {.least = 0.1, .most = 1e5});
  settings.add("seed", options.seed, "of image and weights");
}

// Outputs of these queries only. x: (1, C, Y, X) -> (queries, O)
Tensor outputs_of(const Convolution& convolution, float alpha, const Tensor& x, const std::vector<int64_t>& queries) {
  const int64_t C = x.size(1), Y = x.size(2), X = x.size(3), H = convolution.taps(), n = std::ssize(queries);
  const Model layer = attention_layer(convolution, {.alpha = alpha}, Y, X);
  const Tensor maps = head_maps(parameter_of(layer, "alpha"), parameter_of(layer, "center"), Y, X, queries);  // (H, n, N)
  const Tensor tokens = reshape(permute(x, {0, 2, 3, 1}), {1, Y * X, C});
  const Tensor heads = reshape(permute(matmul(maps, tokens), {1, 0, 2}), {n, H * C});
  return linear(heads, parameter_of(layer, "output.weight"), parameter_of(layer, "output.bias"));
}

std::vector<int64_t> queries_on(int64_t side, int64_t stride) {
  std::vector<int64_t> out;
  for (int64_t y = 0; y < side; y += stride)
    for (int64_t x = 0; x < side; x += stride) out.push_back(y * side + x);
  return out;
}

// The image shifted down by one row, with the first row repeated.
Tensor shifted_down(const Tensor& x) { return concat({slice(x, 2, 0, 1), slice(x, 2, 0, x.size(2) - 1)}, 2); }

// Distance between the output of a shifted image and the output shifted by `rows`, away from the edges, relative to the largest output.
double distance_when_shifted(const Tensor& before, const Tensor& after, int64_t rows, int64_t edge) {
  const int64_t Y = before.size(2);
  const Tensor here = slice(before, 2, edge, Y - edge), there = slice(after, 2, edge + rows, Y - edge + rows);
  return largest_difference(slice(here, 3, edge, here.size(3) - edge), slice(there, 3, edge, there.size(3) - edge)) / largest(before);
}

Report run_stride(const StrideOptions& options, const ProgressCallback& progress) {
  const NoGrad no_grad;
  Rng rng(options.seed);
  const int64_t side = options.side, least = 2 * options.kernel + 4;
  check<UsageError>(side >= least, "side=", side, " is too small for a kernel of ", options.kernel, ", expected ", least, " or more");
  const Tensor x = random_normal({1, options.channels, side, side}, 0, 1, rng, kCpu);
  const Convolution plain = random_convolution(options.channels, 2 * options.channels, options.kernel, rng);
  Report report;
  report.statement =
      "Without changes the layer has an output at every pixel and commutes with shifts by single pixels: no choice of weights makes it a "
      "strided convolution, which has one output per $s^2$ pixels. With only the queries on the strided grid it is one, at $1/s^2$ of the "
      "work.";
  Table table{.title = "Outputs and errors at α = " + number_text(options.alpha),
              .columns = {"stride", "outputs of all queries", "outputs of the convolution", "error on the strided grid",
                          "multiply-adds of the maps"}};
  Series all{.name = "all queries", .mark = Mark::both}, some{.name = "queries on the strided grid", .mark = Mark::both},
      predicted{.name = "N² / s²", .mark = Mark::dashed};
  Figure film{.title = "Strided queries",
              .caption =
                  "An image filtered by a random kernel: the outputs of all queries, the strided convolution, and the layer with every "
                  "s-th query of a row and column.",
              .parameter = "stride"};
  const Tensor every = attended(attention_layer(plain, {.alpha = options.alpha}, side, side), x);
  const Tensor image = image_tensor(image_for("", kStrideSide, options.seed));
  Convolution filter = random_convolution(3, 1, options.kernel, rng);
  const Tensor filtered = attended(attention_layer(filter, {.alpha = options.alpha}, kStrideSide, kStrideSide), image);
  const double most = largest(filtered);
  const auto shown = [&](const Tensor& values) {
    HeatMap map = heat_map(reshape(values, {values.size(2), values.size(3)}));
    map.diverging = true, map.least = -most, map.most = most;
    return map;
  };
  for (int64_t stride = 1; stride <= options.strides; ++stride) {
    const auto s = static_cast<double>(stride);
    const std::string which = "stride " + std::to_string(stride);
    progress(which);
    Convolution convolution = plain;
    convolution.stride = stride;
    const Tensor expected = convolved(convolution, x, Border::replicate);
    const int64_t rows = expected.size(2), N = side * side;
    const std::vector<int64_t> queries = queries_on(side, stride);
    const Tensor strided_outputs = outputs_of(convolution, options.alpha, x, queries);
    const Tensor found = permute(reshape(strided_outputs, {1, rows, rows, strided_outputs.size(1)}), {0, 3, 1, 2});
    const double error = error_between(convolution, Border::replicate, x, found, expected).worst();
    const LayerError checkpoint = layer_error(convolution, {.alpha = options.alpha}, x);
    const double work = static_cast<double>(std::ssize(queries) * N);
    report.measured.push_back(equal_to(which + ": outputs with queries on the strided grid", static_cast<double>(rows * expected.size(3)),
                                       static_cast<double>(strided_outputs.size(0))));
    report.measured.push_back(at_most(which + ": error on the strided grid", kRoundingError, error));
    report.measured.push_back(at_most(which + ": error of the layer with a stride in its config", kRoundingError, checkpoint.worst()));
    table.rows.push_back(
        {s, static_cast<double>(every.size(2) * every.size(3)), static_cast<double>(rows * expected.size(3)), error, work});
    for (Series* each : {&all, &some, &predicted}) each->x.push_back(s);
    all.y.push_back(static_cast<double>(N * N)), some.y.push_back(work), predicted.y.push_back(static_cast<double>(N * N) / (s * s));
    filter.stride = stride;
    const Tensor strided = attended(attention_layer(filter, {.alpha = options.alpha}, kStrideSide, kStrideSide), image);
    film.frames.push_back({std::to_string(stride),
                           {{"all queries", shown(filtered)},
                            {"strided convolution", shown(convolved(filter, image, Border::replicate))},
                            {"strided queries", shown(strided)}}});
  }
  report.measured.push_back(
      equal_to("all queries: outputs", static_cast<double>(side * side), static_cast<double>(every.size(2) * every.size(3))));
  Convolution two = plain;
  two.stride = 2;
  const Tensor shifted = attended(attention_layer(plain, {.alpha = options.alpha}, side, side), shifted_down(x));
  report.measured.push_back(at_most("all queries, image shifted by 1 pixel: distance from the outputs shifted by 1", kRoundingError,
                                    distance_when_shifted(every, shifted, 1, options.kernel / 2 + 1)));
  const Tensor before = convolved(two, x, Border::replicate), after = convolved(two, shifted_down(x), Border::replicate);
  const double nearest = std::min(distance_when_shifted(before, after, 0, options.kernel / 4 + 1),
                                  distance_when_shifted(before, after, 1, options.kernel / 4 + 1));
  report.measured.push_back(
      at_least("stride 2, image shifted by 1 pixel: distance from the outputs, shifted or not", kAnotherFunction, nearest));
  report.tables.push_back(std::move(table));
  report.figures.push_back(std::move(film));
  report.figures.push_back(
      figure("Attention weights computed", "Per head: queries times keys.",
             Plot{.body = Lines{.across = {"stride", true}, .up = {"weights", true}, .series = {all, some, predicted}}}));
  excuse_blur(report, options.alpha);
  return report;
}

}  // namespace

Experiment convolution_stride() {
  return {.number = "L23",
          .name = "stride",
          .topic = Topic::convolution,
          .title = "Strided convolutions",
          .claim = "With all queries the layer is no strided convolution; it is one if only the queries on the strided grid are computed.",
          .formula = R"(y_p = \sum_h \sum_k a^h_{(s p) k} x_k W_h + b, \quad p \in \{0, \ldots, Y/s - 1\} \times \{0, \ldots, X/s - 1\})",
          .setup =
              "A random kernel is converted for several strides. The layer runs with all queries and with every $s$-th query of a row and "
              "column; outputs are compared with the strided convolution, also for an image shifted by one pixel.",
          .prepare = prepared(declare_stride, run_stride)};
}

}  // namespace heed::lab
