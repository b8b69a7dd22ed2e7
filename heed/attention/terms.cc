// For every term: its tensors are checked against the sizes of the attention and made dense.
#include "heed/attention/terms.h"

#include <optional>

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

template <class T>
TermInfo described(const char* file) {
  TermInfo out = T::info();
  out.struct_name = T::name;
  out.file = file;
  return out;
}

template <class T>
std::optional<Term> made(const TermInput& input) {
  if constexpr (requires { T::make(input); }) return T::make(input);
  return {};
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

Term checked(Term term, const AttentionSizes& sizes, Device device) {
  std::visit(
      [&]<class T>(T& t) {
        for (const TermTensor& x : tensors_of(t, sizes)) {
          check(x.tensor.defined(), "attention: ", T::name, " has no ", x.name);
          check(fits(x), "attention: ", T::name, "'s ", x.name, " has shape ", x.tensor.shape(), ", expected ",
                x.broadcast ? "one that broadcasts to " : "", x.shape);
          check(x.tensor.device() == device, "attention: ", T::name, "'s ", x.name, " is on ", name_of(x.tensor.device()), ", expected ",
                name_of(device));
          x.tensor = contiguous(converted(x.tensor.detach(), x.dtype));
        }
        if constexpr (requires { t.check_sizes(sizes); }) t.check_sizes(sizes);
      },
      term);
  return term;
}

TermArgs term_args(const Term& term) {
  TermArgs out{};
#define HEED_TERM_ARGS(Name, name)                   \
  if (const auto* each = std::get_if<Name>(&term)) { \
    out.kind = TermKind::name;                       \
    out.name = each->args();                         \
  }
  HEED_TERMS(HEED_TERM_ARGS)
#undef HEED_TERM_ARGS
  return out;
}

const std::vector<TermInfo>& term_infos() {
  static const std::vector<TermInfo> all{
#define HEED_TERM_INFO(Name, name) described<Name>(#name ".h"),
      HEED_TERMS(HEED_TERM_INFO)
#undef HEED_TERM_INFO
  };
  return all;
}

const TermInfo* find_term(const std::string& name) {
  for (const TermInfo& each : term_infos())
    if (each.is_named(name)) return &each;
  return nullptr;
}

const TermInfo& info_of(const Term& term) { return term_infos()[term.index()]; }

Term make_term(const TermInfo& info, const TermInput& input) {
  static constexpr std::optional<Term> (*makers[])(const TermInput&){
#define HEED_TERM_MAKER(Name, name) made<Name>,
      HEED_TERMS(HEED_TERM_MAKER)
#undef HEED_TERM_MAKER
  };
  const std::optional<Term> term = makers[&info - term_infos().data()](input);
  check(term.has_value(), "attention: ", info.name, " cannot be made from settings");
  return *term;
}

}  // namespace heed
