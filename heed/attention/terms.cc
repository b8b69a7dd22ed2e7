// What holds for every term: its tensors are checked against the sizes of the attention and made dense.
#include "heed/attention/terms.h"

#include "heed/core/copy.h"

namespace heed {
namespace {

template <class T>
std::vector<TermTensor> tensors_of(T& term, const AttentionSizes& sizes) {
  if constexpr (requires { term.tensors(sizes); }) return term.tensors(sizes);
  return {};
}

bool fits(const TermTensor& x) {
  const Shape& shape = x.tensor.shape();
  if (!x.broadcast) return shape == x.shape;
  if (shape.rank() != x.shape.rank()) return false;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1 && shape[axis] != x.shape[axis]) return false;
  return true;
}

}  // namespace

std::vector<TermTensor> learned_of(Term& term, const AttentionSizes& sizes) {
  std::vector<TermTensor> learned;
  for (const TermTensor& x : std::visit([&](auto& t) { return tensors_of(t, sizes); }, term))
    if (x.sums != Sums::none) learned.push_back(x);
  return learned;
}

Tensors parameters_of(Term term) {
  Tensors parameters;
  for (const TermTensor& x : learned_of(term, {})) parameters.push_back(x.tensor);
  return parameters;
}

bool is_nonlinear(const Term& term) {
  return std::visit(
      []<class T>(const T&) {
        return requires { T::is_nonlinear; };
      },
      term);
}

Term checked(Term term, const AttentionSizes& sizes) {
  std::visit(
      [&]<class T>(T& t) {
        for (const TermTensor& x : tensors_of(t, sizes)) {
          check(x.tensor.defined(), "attention: ", T::name, " has no ", x.name);
          check(fits(x), "attention: ", T::name, "'s ", x.name, " has shape ", x.tensor.shape(), ", expected ",
                x.broadcast ? "one that broadcasts to " : "", x.shape);
          x.tensor = contiguous(converted(x.tensor.detach(), x.dtype));
        }
        if constexpr (requires { t.check_sizes(sizes); }) t.check_sizes(sizes);
      },
      term);
  return term;
}

}  // namespace heed
