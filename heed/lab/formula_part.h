// The parse tree of a formula, which formula.cc renders as MathML and as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed::lab {

struct FormulaPart {
  enum class Kind { letter, upright, number, sign, bracket, large, space, row, fraction, root, scripts, accent };
  Kind kind = Kind::row;
  std::string text = {};                 // of letters, numbers and signs; of accents: the mark
  std::vector<FormulaPart> inside = {};  // fraction: numerator, denominator; scripts: base, subscript, superscript, an empty row if missing
};

FormulaPart read_formula(std::string_view tex);
bool is_fence(const FormulaPart& part);  // a bracket, or one of a pair of bars

}  // namespace heed::lab
