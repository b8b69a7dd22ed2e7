// L23: strided convolutions as attention: every query answers, so only those on the strided grid may ask.
#include <algorithm>

#include "heed/lab/convolution_as_attention.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/lab/pictures.h"
#include "heed/ops/ops.h"

namespace heed::lab {
namespace {

constexpr int64_t kStrideSide = 40;  // of the picture that is shown

struct StrideOptions {
  int64_t kernel = 3, strides = 4, side = 20, channels = 3;
  float alpha = 40;
  uint64_t seed = 1;
};

void declare_stride(Settings& settings, StrideOptions& options, Size size) {
  if (size == Size::full) options.side = 64, options.strides = 8, options.channels = 16;
  settings.add("kernel", options.kernel, "the side of the kernel", {.least = 1, .most = 11});
  settings.add("strides", options.strides, "from 1 to this", {.least = 2, .most = 16});
  settings.add("side", options.side, "of the random picture", {.least = 12, .most = 96});
  settings.add("channels", options.channels, "of the picture", {.least = 1, .most = 256});
  settings.add("alpha", options.alpha, "sharpness of the heads", {.least = 0.1, .most = 1e5});
  settings.add("seed", options.seed, "of picture and weights");
}

// The answers of those queries, and of no others. x: (1, C, Y, X) -> (queries, O)
Tensor answers_of(const Convolution& convolution, float alpha, const Tensor& x, const std::vector<int64_t>& queries) {
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

// The picture moved down by one row, the first row twice.
Tensor moved_down(const Tensor& x) { return concat({slice(x, 2, 0, 1), slice(x, 2, 0, x.size(2) - 1)}, 2); }

// How far what becomes of a moved picture is from what became of the picture, moved by `rows`, away from the edges; a share of the
// largest number.
double distance_when_moved(const Tensor& before, const Tensor& after, int64_t rows, int64_t edge) {
  const int64_t Y = before.size(2);
  const Tensor here = slice(before, 2, edge, Y - edge), there = slice(after, 2, edge + rows, Y - edge + rows);
  return largest_difference(slice(here, 3, edge, here.size(3) - edge), slice(there, 3, edge, there.size(3) - edge)) / largest(before);
}

Report run_stride(const StrideOptions& options, const Say& say) {
  const NoGrad quiet;
  Rng rng(options.seed);
  const int64_t side = options.side, least = 2 * options.kernel + 4;
  check<UsageError>(side >= least, "side=", side, " is too small for a kernel of ", options.kernel, ", expected ", least, " or more");
  const Tensor x = random_normal({1, options.channels, side, side}, 0, 1, rng);
  const Convolution plain = random_convolution(options.channels, 2 * options.channels, options.kernel, rng);
  Report report;
  report.statement =
      "As it stands the layer gives an answer at every place and moves with the picture by single pixels: no choice of weights makes it a "
      "strided convolution, which gives one answer for $s^2$ places. When only the queries on the strided grid ask, it is one, at $1/s^2$ "
      "of the work.";
  Table table{.title = "Answers and errors at α = " + number_text(options.alpha),
              .columns = {"stride", "answers as it stands", "answers of the convolution", "error on the strided grid",
                          "multiply-adds of the maps"}};
  Series all{.name = "every query answers", .mark = Mark::both}, some{.name = "queries on the strided grid", .mark = Mark::both},
      predicted{.name = "N² / s²", .mark = Mark::dashed};
  Figure film{.title = "Queries that ask",
              .caption =
                  "A picture filtered by a random kernel: the answers of all queries, the strided convolution, and the layer whose queries "
                  "are every s-th of a row and column.",
              .parameter = "stride"};
  const Tensor every = attended(attention_layer(plain, {.alpha = options.alpha}, side, side), x);
  const Tensor picture = picture_tensor(picture_for("", kStrideSide, options.seed));
  Convolution filter = random_convolution(3, 1, options.kernel, rng);
  const Tensor filtered = attended(attention_layer(filter, {.alpha = options.alpha}, kStrideSide, kStrideSide), picture);
  const double most = largest(filtered);
  const auto shown = [&](const Tensor& answers) {
    HeatMap map = heat_map(reshape(answers, {answers.size(2), answers.size(3)}));
    map.diverging = true, map.least = -most, map.most = most;
    return map;
  };
  for (int64_t stride = 1; stride <= options.strides; ++stride) {
    const auto s = static_cast<double>(stride);
    const std::string which = "stride " + std::to_string(stride);
    say(which);
    Convolution convolution = plain;
    convolution.stride = stride;
    const Tensor expected = convolved(convolution, x, Border::replicate);
    const int64_t rows = expected.size(2), N = side * side;
    const std::vector<int64_t> queries = queries_on(side, stride);
    const Tensor asked = answers_of(convolution, options.alpha, x, queries);
    const Tensor found = permute(reshape(asked, {1, rows, rows, asked.size(1)}), {0, 3, 1, 2});
    const double error = error_between(convolution, Border::replicate, x, found, expected).worst();
    const LayerError checkpoint = layer_error(convolution, {.alpha = options.alpha}, x);
    const double work = static_cast<double>(std::ssize(queries) * N);
    report.measured.push_back(equal_to(which + ": answers when queries are on the strided grid",
                                       static_cast<double>(rows * expected.size(3)), static_cast<double>(asked.size(0))));
    report.measured.push_back(at_most(which + ": error on the strided grid", kRoundingError, error));
    report.measured.push_back(at_most(which + ": error of the layer with a stride in its config", kRoundingError, checkpoint.worst()));
    table.rows.push_back(
        {s, static_cast<double>(every.size(2) * every.size(3)), static_cast<double>(rows * expected.size(3)), error, work});
    for (Series* each : {&all, &some, &predicted}) each->x.push_back(s);
    all.y.push_back(static_cast<double>(N * N)), some.y.push_back(work), predicted.y.push_back(static_cast<double>(N * N) / (s * s));
    filter.stride = stride;
    const Tensor strided = attended(attention_layer(filter, {.alpha = options.alpha}, kStrideSide, kStrideSide), picture);
    film.frames.push_back({std::to_string(stride),
                           {{"every query", shown(filtered)},
                            {"strided convolution", shown(convolved(filter, picture, Border::replicate))},
                            {"strided queries", shown(strided)}}});
  }
  report.measured.push_back(
      equal_to("as it stands: answers", static_cast<double>(side * side), static_cast<double>(every.size(2) * every.size(3))));
  Convolution two = plain;
  two.stride = 2;
  const Tensor moved = attended(attention_layer(plain, {.alpha = options.alpha}, side, side), moved_down(x));
  report.measured.push_back(at_most("as it stands, picture moved by 1 pixel: distance from the answers moved by 1", kRoundingError,
                                    distance_when_moved(every, moved, 1, options.kernel / 2 + 1)));
  const Tensor before = convolved(two, x, Border::replicate), after = convolved(two, moved_down(x), Border::replicate);
  const double nearest = std::min(distance_when_moved(before, after, 0, options.kernel / 4 + 1),
                                  distance_when_moved(before, after, 1, options.kernel / 4 + 1));
  report.measured.push_back(
      at_least("stride 2, picture moved by 1 pixel: distance from the answers, moved or not", kAnotherFunction, nearest));
  report.tables.push_back(std::move(table));
  report.figures.push_back(std::move(film));
  report.figures.push_back(
      figure("Weights that are computed", "For each head: queries times keys.",
             Plot{.body = Lines{.across = {"stride", true}, .up = {"weights", true}, .series = {all, some, predicted}}}));
  return report;
}

}  // namespace

Experiment convolution_stride() {
  return {
      .number = "L23",
      .name = "stride",
      .topic = Topic::convolution,
      .title = "Strided convolutions",
      .claim =
          "The layer as it stands is no strided convolution, as every query answers; it is one when queries are taken on the strided grid.",
      .formula = R"(y_p = \sum_h \sum_k a^h_{(s p) k} x_k W_h + b, \quad p \in \{0, \ldots, Y/s - 1\} \times \{0, \ldots, X/s - 1\})",
      .prepare = prepared(declare_stride, run_stride)};
}

}  // namespace heed::lab
