// For every term: its tensors are checked against the sizes of the attention and made dense.
#include "heed/attention/terms.h"

#include <algorithm>

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
#define HEED_TERM_INFO(Name, name) Name::info(),
      HEED_TERMS(HEED_TERM_INFO)
#undef HEED_TERM_INFO
  };
  return all;
}

const TermInfo* find_term(const std::string& name) {
  for (const TermInfo& each : term_infos())
    if (each.name == name || std::find(each.aliases.begin(), each.aliases.end(), name) != each.aliases.end()) return &each;
  return nullptr;
}

const TermInfo& info_of(const Term& term) { return term_infos()[term.index()]; }

TermValues settings_of(const Term& term) {
  return std::visit(
      [](const auto& t) -> TermValues {
        if constexpr (requires { t.settings(); }) return t.settings();
        return {};
      },
      term);
}

TermValues complete_settings(const TermInfo& info, TermValues given) {
  for (const TermSetting& each : info.settings) {
    const double value = given.try_emplace(each.name, each.usual).first->second;
    check(value >= each.least && value <= each.most, info.name, ": ", each.name, " is ", value, ", expected ", each.least, " to ",
          each.most);
  }
  const auto has = [&](const std::string& name) {
    return std::any_of(info.settings.begin(), info.settings.end(), [&](const TermSetting& each) { return each.name == name; });
  };
  for (const auto& [name, value] : given) check(has(name), info.name, " has no setting ", name);
  return given;
}

}  // namespace heed
