// The score terms: what attention adds to or takes from a score before the softmax, each in a file of its own. A new
// term is one file in terms/ and its two lines here. A term struct has
//   name, and if it reads tensors: tensors(sizes), and if there is more to check: check_sizes(sizes);
// and formulas for lanes (term_lanes.h says what they may be): keep for a mask, or score and gradient; reach, skip and idle.
#ifndef HEED_ATTENTION_TERMS_H_
#define HEED_ATTENTION_TERMS_H_
#include <variant>
#endif

#include "heed/attention/terms/bias.h"
#include "heed/attention/terms/bucketed.h"
#include "heed/attention/terms/gaussian.h"
#include "heed/attention/terms/mask.h"
#include "heed/attention/terms/pattern.h"
#include "heed/attention/terms/relative.h"
#include "heed/attention/terms/relative_keys.h"
#include "heed/attention/terms/soft_cap.h"

#ifndef HEED_ATTENTION_TERM_LIST
#define HEED_ATTENTION_TERM_LIST
namespace heed {

using Term = std::variant<Causal, Window, Chunks, Dilated, KeyLengths, Mask, BlockSparse, GridWindow, Bias, Alibi, RelativeBias,
                          RelativeBias2d, RelativeKeys, BucketedBias, Gaussian2d, Gaussian2dFull, SoftCap>;

Tensors parameters_of(Term term);                                             // those that it may learn, in order
std::vector<TermTensor> learned_of(Term& term, const AttentionSizes& sizes);  // the same, inside the term
bool is_nonlinear(const Term& term);                                          // changes scores other than by adding
Term checked(Term term, const AttentionSizes& sizes);                         // with dense tensors of the right shapes

}  // namespace heed
#endif
