// A subset of TeX, as MathML for pages and as plain text for terminals: letters, numbers, signs, Greek and other symbols (\beta, \cdot,
// \le, \infty ...), functions (\log, \exp, \max ...), ^ and _, \frac{}{}, \sqrt{}, \sum, \prod, \hat{}, \tilde{}, \bar{}, \mathrm{},
// \mathbf{}, \mathbb{}, \mathcal{}, \text{}, \operatorname{}, \left and \right, and the spaces \, \; \quad. Anything else is an error that
// names it.
#pragma once

#include <string>
#include <string_view>

namespace heed::lab {

std::string formula_markup(std::string_view tex, bool display = true);  // <math> elements; display: as a block of its own
std::string formula_text(std::string_view tex);

// Sentences with $formulas$.
std::string sentence_markup(std::string_view sentence);
std::string sentence_text(std::string_view sentence);

}  // namespace heed::lab
