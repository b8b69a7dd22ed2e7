// The element functions of score terms for one float: called by CUDA kernels. On the CPU they count visible keys, and tests compare
// them with the reference.
#pragma once

#include <cmath>

#include "heed/attention/term_list.h"

#define HEED_ELEMENT HEED_HOST_DEVICE inline

namespace heed::scalar {

template <class V>
struct Keys {
  int64_t first;
};
HEED_ELEMENT int64_t lane_count(Keys<float>) { return 1; }
HEED_ELEMENT float numbers(Keys<float> j) { return static_cast<float>(j.first); }
template <class Function>
HEED_ELEMENT float from_each(Keys<float> j, const Function& function) {
  return function(j.first);
}
HEED_ELEMENT bool truth(Keys<float>, bool value) { return value; }
HEED_ELEMENT bool truths(Keys<float>, const bool* from, int64_t) { return *from; }

HEED_ELEMENT float abs(float x) { return fabsf(x); }
HEED_ELEMENT float floor(float x) { return floorf(x); }
HEED_ELEMENT float fma(float a, float b, float c) { return fmaf(a, b, c); }
HEED_ELEMENT float log(float x) { return logf(x); }
HEED_ELEMENT float tanh(float x) { return tanhf(x); }
HEED_ELEMENT float select(bool condition, float yes, float no) { return condition ? yes : no; }

#include "heed/attention/term_elements.h"

struct LoadFloat {
  HEED_HOST_DEVICE float operator()(const float* from) const { return *from; }
};

// The score of query row.i and key j after one term.
HEED_ELEMENT float term_score(const TermArgs& term, float s, const ScoreRow& row, int64_t j) {
  return visit_term(term, [&](const auto& t) { return score(t, s, row, Keys<float>{j}, LoadFloat()); });
}

// Whether a term keeps key j; true for terms that are not masks.
HEED_ELEMENT bool term_keeps(const TermArgs& term, const ScoreRow& row, int64_t j) {
  return visit_term(term, [&]<class T>(const T& t) -> bool {
    if constexpr (kIsMask<T>) {
      return keep(t, row, Keys<float>{j});
    } else {
      return true;
    }
  });
}

}  // namespace heed::scalar

#undef HEED_ELEMENT
