// Score terms of requests: their settings and parameters, with the values that a new model would have where none are given.
#pragma once

#include "heed/attention/terms.h"
#include "heed/io/json_reader.h"

namespace heed::serve {

struct RequestTerm {
  const TermInfo* info;
  TermValues values;
  Tensors parameters;  // in the order of the descriptor
  Term term;
};

bool usable_in_attend(const TermInfo& info);  // its settings and parameters are all it needs
Tensor initial_parameter(const TermParameter& parameter, int64_t heads, const TermValues& values, uint64_t seed);
// {"name": ..., "settings": {...}, "parameters": {...}}; parameters take gradients
RequestTerm term_in(const JsonReader& json, const TermPlace& place, int64_t heads, uint64_t seed);

}  // namespace heed::serve
