// The score terms for users: they add to a score or mask it before the softmax.
#pragma once

#include <variant>

#include "heed/attention/term_list.h"
#include "heed/core/api.h"

namespace HEED_API heed {

namespace detail {
template <class, class... Terms>
struct TermVariant {
  using type = std::variant<Terms...>;
};
#define HEED_TERM_ALTERNATIVE(Name, kind) , Name
using TermVariantOf = TermVariant<void HEED_TERMS(HEED_TERM_ALTERNATIVE)>;
#undef HEED_TERM_ALTERNATIVE
}  // namespace detail

// Any of the terms in attention/terms/: Causal{}, Alibi{slopes}, Bias{tensor}, ... docs/attention.md lists them.
using Term = detail::TermVariantOf::type;

Tensors parameters_of(Term term);                                             // that can be learned, in order
std::vector<TermTensor> learned_of(Term& term, const AttentionSizes& sizes);  // the same, inside the term
// With dense tensors of the right shapes, which must be on the device.
Term checked(Term term, const AttentionSizes& sizes, Device device);
TermArgs term_args(const Term& term);  // of a checked term, which must outlive the result

// The descriptors of all terms, in the order of the list; of one, by name or alias, or null; of a term.
const std::vector<TermInfo>& term_infos();
const TermInfo* find_term(const std::string& name);
const TermInfo& info_of(const Term& term);
// A term that models can use (TermInfo::use), with a value for every setting.
Term make_term(const TermInfo& info, const TermInput& input);

}  // namespace heed
