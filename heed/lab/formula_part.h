// A formula once it is read: what formula.cc writes as MathML and as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed::lab {

struct FormulaPart {
  enum class Kind { letter, upright, number, sign, bracket, large, space, row, fraction, root, scripts, accent };
  Kind kind = Kind::row;
  std::string text = {};                 // of letters, numbers and signs; the mark of an accent
  std::vector<FormulaPart> inside = {};  // fraction: above, below; scripts: base, below, above, where an empty row is none
};

FormulaPart read_formula(std::string_view tex);
bool is_fence(const FormulaPart& part);  // a bracket, or one of a pair of lines

}  // namespace heed::lab
