// The reference of attention: the score of every term, the output and every gradient, written out in double.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/attention/attention.h"
#include "tests/ops/cases.h"

namespace heed::test {

struct Sizes {
  int64_t B, H, G, N, M, D, E;
};

// One number of a term's parameters.
struct Read {
  size_t which;
  int64_t index;
};

// A term, its score in double from its parameters in double, and which of their numbers the score reads.
struct Subject {
  std::string name;
  Term term;
  std::function<double(const Many& p, double s, int64_t b, int64_t h, int64_t i, int64_t j)> score;
  std::function<std::vector<Read>(int64_t b, int64_t h, int64_t i, int64_t j)> reads = {};
};

// Every term in HEED_TERMS needs subjects<Term>(), defined in term_reference.cc; every_term() runs them.
template <class T>
std::vector<Subject> subjects(const Sizes& z);
#define HEED_SUBJECTS(Name, kind) \
  template <>                     \
  std::vector<Subject> subjects<Name>(const Sizes& z);
HEED_TERMS(HEED_SUBJECTS)
#undef HEED_SUBJECTS

// In the order of the list, so that in pairs the nonlinear term comes both before and after learned terms.
std::vector<Subject> every_term(const Sizes& z);

// The output and every gradient, written out.
struct Expected {
  Doubles out, dq, dk, dv;
  Doubles weights;               // (B, H, N, M)
  std::vector<Many> parameters;  // of every term
};

struct ReferenceKind {
  bool hard = false;                   // one-hot rows, averaged over ties
  bool score_gradient = true;          // false: only values get one
  Doubles factors = Doubles(Shape{});  // (B, H, N, M): the factors of dropout; without axes: no dropout
};

// x: q, k and v; g: the gradient of the output
Expected reference(const Sizes& z, double beta, const std::vector<Subject>& terms, const Many& x, const Doubles& g,
                   const ReferenceKind& kind = {});

struct Inputs {
  Tensor q, k, v;
  explicit Inputs(const Sizes& z);
};

// Every element must be within `tolerance` times the largest; `floor`: absolute tolerance for results that are exactly zero.
void expect_near(const std::string& what, const Tensor& got, const Doubles& expected, double tolerance, double floor = 1e-12);

// run() must give the bits of `got` for any number of threads.
void expect_same_for_any_threads(const Tensors& got, const std::function<Tensors()>& run);

}  // namespace heed::test
