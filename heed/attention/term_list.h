// The list of score terms, and a term as kernels read it: a kind and its numbers. A new term is one file in terms/, its line in
// term_files.h and its line here. Read by g++ and nvcc.
#pragma once

#include "heed/attention/term_files.h"
#include "heed/core/api.h"

// X(name of the struct, name of the kind)
#define HEED_TERMS(X)                 \
  X(Causal, causal)                   \
  X(Window, window)                   \
  X(Chunks, chunks)                   \
  X(Dilated, dilated)                 \
  X(KeyLengths, key_lengths)          \
  X(Mask, mask)                       \
  X(BlockSparse, block_sparse)        \
  X(GridWindow, grid_window)          \
  X(RelativeBias, relative_bias)      \
  X(RelativeBias2d, relative_bias_2d) \
  X(RelativeKeys, relative_keys)      \
  X(RelativeKeys2d, relative_keys_2d) \
  X(BucketedBias, bucketed_bias)      \
  X(Bias, bias)                       \
  X(SoftCap, soft_cap)                \
  X(Alibi, alibi)                     \
  X(Kerple, kerple)                   \
  X(Gaussian2d, gaussian_2d)          \
  X(Gaussian2dFull, gaussian_2d_full)

namespace HEED_API heed {

enum class TermKind : uint8_t {
#define HEED_TERM_KIND(Name, kind) kind,
  HEED_TERMS(HEED_TERM_KIND)
#undef HEED_TERM_KIND
};

struct TermArgs {
  TermKind kind;
  union {
#define HEED_TERM_MEMBER(Name, kind) Name##Args kind;
    HEED_TERMS(HEED_TERM_MEMBER)
#undef HEED_TERM_MEMBER
  };
};

// Terms in the order in which they are applied.
inline constexpr int kMaxTerms = 8;
struct TermSequence {
  TermArgs terms[kMaxTerms];
  int count = 0;

  HEED_HOST_DEVICE const TermArgs* begin() const { return terms; }
  HEED_HOST_DEVICE const TermArgs* end() const { return terms + count; }
  HEED_HOST_DEVICE bool empty() const { return count == 0; }
  HEED_HOST_DEVICE const TermArgs& operator[](int index) const { return terms[index]; }
};

// Calls visit with the Args of a term.
template <class Visit>
HEED_HOST_DEVICE decltype(auto) visit_term(const TermArgs& term, const Visit& visit) {
  switch (term.kind) {
#define HEED_TERM_CASE(Name, kind) \
  case TermKind::kind: return visit(term.kind);
    HEED_TERMS(HEED_TERM_CASE)
#undef HEED_TERM_CASE
  }
  __builtin_unreachable();
}

template <class T>
inline constexpr bool kIsMask = requires {
  T::is_mask;
};
template <class T>
inline constexpr bool kReadsMask = requires {
  T::reads_mask;
};  // which keys it masks depends on values in memory
template <class T>
inline constexpr bool kIsNonlinear = requires {
  T::is_nonlinear;
};  // changes scores other than by adding

}  // namespace heed
