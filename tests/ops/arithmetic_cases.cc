// Cases of views, arithmetic and matrix products.
#include "tests/ops/cases.h"

namespace heed::test {
namespace {

using Two = std::function<double(double, double)>;

Many broadcast(const Many& in, const Two& f) {
  Doubles out(broadcast_shape("reference", in[0].shape, in[1].shape));
  for_each_index(out.shape, [&](const Shape& index) {
    out[flat(out.shape, index)] = f(broadcast_at(in[0], index, out.shape.rank()), broadcast_at(in[1], index, out.shape.rank()));
  });
  return {out};
}

std::vector<Case> arithmetic(Tensor (*op)(const Tensor&, const Tensor&), const Two& f) {
  std::vector<Case> found;
  const std::pair<Shape, Shape> shapes[] = {{{3, 5}, {3, 5}},  {{2, 3, 7}, {7}},          {{4, 1, 3}, {2, 1}}, {{1}, {5, 3}}, {{}, {}},
                                            {{5, 1}, {1, 17}}, {{2, 3, 1, 4}, {3, 5, 1}}, {{0, 3}, {3}},       {{67}, {1}}};
  for (const auto& [a, b] : shapes)
    found.push_back({.what = "rank " + std::to_string(a.rank()) + " with rank " + std::to_string(b.rank()),
                     .inputs = {normal_input(a, 1), positive_input(b, 2)},
                     .run = [op](const Tensors& in) { return Tensors{op(in[0], in[1])}; },
                     .reference = [f](const Many& in) { return broadcast(in, f); }});
  return found;
}

// An op that only moves elements: to[i] = from[places[i]], or zero.
Many moved(const Doubles& from, const Shape& shape, const std::function<Shape(const Shape&)>& place) {
  Doubles out(shape);
  for_each_index(shape, [&](const Shape& index) { out[flat(shape, index)] = from[flat(from.shape, place(index))]; });
  return {out};
}

Many product(const Many& in) {
  const Doubles &a = in[0], &b = in[1];
  const auto leading = [](const Shape& s) { return Shape(std::span(s.begin(), static_cast<size_t>(s.rank() - 2))); };
  Shape shape = broadcast_shape("reference", leading(a.shape), leading(b.shape));
  const int64_t M = a.dim(-2), K = a.dim(-1), N = b.dim(-1);
  shape.push_back(M);
  shape.push_back(N);
  Doubles out(shape);
  for_each_index(shape, [&](const Shape& index) {
    double total = 0;
    for (int64_t k = 0; k < K; ++k) {
      Shape left = index, right = index;
      left[shape.rank() - 1] = k;
      right[shape.rank() - 2] = k;
      total += broadcast_at(a, left, shape.rank()) * broadcast_at(b, right, shape.rank());
    }
    out[flat(shape, index)] = total;
  });
  return {out};
}

}  // namespace

template <>
std::vector<Case> cases<Op::add>() {
  return arithmetic(&add, [](double a, double b) { return a + b; });
}
template <>
std::vector<Case> cases<Op::subtract>() {
  return arithmetic(&subtract, [](double a, double b) { return a - b; });
}
template <>
std::vector<Case> cases<Op::multiply>() {
  return arithmetic(&multiply, [](double a, double b) { return a * b; });
}
template <>
std::vector<Case> cases<Op::divide>() {
  return arithmetic(&divide, [](double a, double b) { return a / b; });
}

template <>
std::vector<Case> cases<Op::scale>() {
  return {{.what = "factor and shift",
           .inputs = {normal_input({3, 37})},
           .run = [](const Tensors& in) { return Tensors{scale(in[0], -1.5f, 0.25f)}; },
           .reference =
               [](const Many& in) {
                 Doubles out = in[0];
                 for (double& value : out.values) value = -1.5 * value + 0.25;
                 return Many{out};
               }}};
}

template <>
std::vector<Case> cases<Op::reshape>() {
  const auto rearranged = [](const Shape& from, const Shape& to, const Shape& result) {
    return Case{.what = "rank " + std::to_string(from.rank()) + " to " + std::to_string(to.rank()),
                .inputs = {normal_input(from)},
                .run = [to](const Tensors& in) { return Tensors{reshape(in[0], to)}; },
                .reference =
                    [result](const Many& in) {
                      Doubles out(result);
                      out.values = in[0].values;
                      return Many{out};
                    }};
  };
  return {rearranged({3, 4}, {2, 6}, {2, 6}),
          rearranged({2, 3, 5}, {-1, 5}, {6, 5}),
          rearranged({1}, {}, {}),
          rearranged({}, {1, 1}, {1, 1}),
          rearranged({2, 1, 6}, {2, 2, 1, 3}, {2, 2, 1, 3}),
          rearranged({0, 3}, {3, 0, 2}, {3, 0, 2})};
}

template <>
std::vector<Case> cases<Op::permute>() {
  return {{.what = "three axes",
           .inputs = {normal_input({2, 3, 5})},
           .run =
               [](const Tensors& in) {
                 return Tensors{permute(in[0], {2, 0, 1})};
               },
           .reference =
               [](const Many& in) {
                 return moved(in[0], {5, 2, 3}, [](const Shape& i) { return Shape{i[1], i[2], i[0]}; });
               }},
          {.what = "transpose",
           .inputs = {normal_input({4, 1, 3})},
           .run = [](const Tensors& in) { return Tensors{transpose(in[0], 0, -1)}; },
           .reference =
               [](const Many& in) {
                 return moved(in[0], {3, 1, 4}, [](const Shape& i) { return Shape{i[2], i[1], i[0]}; });
               }}};
}

template <>
std::vector<Case> cases<Op::slice>() {
  return {{.what = "with a step",
           .inputs = {normal_input({3, 11})},
           .run = [](const Tensors& in) { return Tensors{slice(in[0], 1, 2, 10, 3)}; },
           .reference =
               [](const Many& in) {
                 return moved(in[0], {3, 3}, [](const Shape& i) { return Shape{i[0], 2 + 3 * i[1]}; });
               }},
          {.what = "from the end",
           .inputs = {normal_input({5, 2, 3})},
           .run = [](const Tensors& in) { return Tensors{slice(in[0], 0, -3, -1)}; },
           .reference =
               [](const Many& in) {
                 return moved(in[0], {2, 2, 3}, [](const Shape& i) { return Shape{i[0] + 2, i[1], i[2]}; });
               }},
          {.what = "nothing",
           .inputs = {normal_input({4})},
           .run = [](const Tensors& in) { return Tensors{slice(in[0], 0, 2, 2)}; },
           .reference = [](const Many&) { return Many{Doubles({0})}; }}};
}

template <>
std::vector<Case> cases<Op::expand>() {
  return {{.what = "inner and outer",
           .inputs = {normal_input({3, 1})},
           .run =
               [](const Tensors& in) {
                 return Tensors{expand(in[0], {2, 3, 5})};
               },
           .reference =
               [](const Many& in) {
                 return moved(in[0], {2, 3, 5}, [](const Shape& i) { return Shape{i[1], 0}; });
               }}};
}

template <>
std::vector<Case> cases<Op::cast>() {
  return {{.what = "to the same",
           .inputs = {normal_input({3, 5})},
           .run = [](const Tensors& in) { return Tensors{cast(in[0], DType::f32)}; },
           .reference = [](const Many& in) { return in; },
           .halves = false},
          {.what = "through bf16",
           .inputs = {converted(converted(normal_input({3, 5}), DType::bf16), DType::f32)},
           .run = [](const Tensors& in) { return Tensors{cast(cast(in[0], DType::bf16), DType::f32)}; },
           .reference = [](const Many& in) { return in; },
           .gradient_tolerance = 4e-3,  // the gradient itself is rounded to bf16, which has 8 bits
           .halves = false}};
}

template <>
std::vector<Case> cases<Op::matmul>() {
  std::vector<Case> found;
  const std::pair<Shape, Shape> shapes[] = {{{3, 5}, {5, 7}},          {{1, 1}, {1, 1}},   {{2, 3, 4}, {2, 4, 5}}, {{2, 3, 4}, {4, 5}},
                                            {{2, 1, 3, 4}, {3, 4, 2}}, {{17, 1}, {1, 19}}, {{1, 33}, {33, 1}},     {{3, 0}, {0, 2}},
                                            {{5, 3, 2}, {1, 2, 3}},    {{1, 7}, {7, 35}},  {{2, 3, 0}, {0, 4}}};
  for (const auto& [a, b] : shapes)
    found.push_back({.what = "rank " + std::to_string(a.rank()) + " by rank " + std::to_string(b.rank()),
                     .inputs = {normal_input(a, 1), normal_input(b, 2)},
                     .run = [](const Tensors& in) { return Tensors{matmul(in[0], in[1])}; },
                     .reference = product,
                     .layout_changes_rounding = true});
  found.push_back({.what = "transposed views",
                   .inputs = {normal_input({2, 4, 3}, 1), normal_input({2, 5, 4}, 2)},
                   .run = [](const Tensors& in) { return Tensors{matmul(transpose(in[0], 1, 2), transpose(in[1], 1, 2))}; },
                   .reference =
                       [](const Many& in) {
                         const auto transposed = [](const Doubles& x) {
                           return moved(x, {x.dim(0), x.dim(2), x.dim(1)}, [](const Shape& i) { return Shape{i[0], i[2], i[1]}; })[0];
                         };
                         return product({transposed(in[0]), transposed(in[1])});
                       },
                   .layout_changes_rounding = true});
  return found;
}

}  // namespace heed::test
