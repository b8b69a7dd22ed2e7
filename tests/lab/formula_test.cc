// Formulas as MathML and as text.
#include "heed/lab/formula.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace heed::test {
namespace {

using namespace lab;

TEST(Formula, is_converted_to_mathml) {
  EXPECT_EQ(formula_markup("a", false), "<math><mrow><mi>a</mi></mrow></math>");
  EXPECT_EQ(formula_markup(R"(\frac{1}{\sqrt{d}})"),
            "<math display=\"block\"><mrow><mfrac><mrow><mn>1</mn></mrow><mrow><msqrt><mi>d</mi></msqrt></mrow></mfrac></mrow></math>");
  EXPECT_EQ(formula_markup(R"(x_i^2)", false),
            "<math><mrow><msubsup><mrow><mi>x</mi></mrow><mrow><mi>i</mi></mrow><mrow><mn>2</mn></mrow></msubsup></mrow></math>");
  EXPECT_EQ(formula_markup(R"(\sum_{j} a < b)", false),
            "<math><mrow><munder><mrow><mo>∑</mo></mrow><mrow><mi>j</mi></mrow></munder><mi>a</mi><mo>&lt;</mo><mi>b</mi></mrow></math>");
}

TEST(Formula, lines_can_break_at_wide_spaces) {
  EXPECT_EQ(formula_markup(R"(a \quad b)"), formula_markup("a") + formula_markup("b"));
  EXPECT_EQ(formula_markup(R"(a \, b)").find("</math><math"), std::string::npos);
}

TEST(Formula, is_converted_to_text) {
  EXPECT_EQ(formula_text(R"(\mathrm{Var} = 2 \sigma^2 \mu \cdot \mu + d \sigma^4)"), "Var = 2σ²μ·μ + dσ⁴");
  EXPECT_EQ(formula_text(R"(\frac{e^{\beta s_j}}{\sum_m e^{\beta s_m}})"), "e^(βsⱼ)/(∑ₘ e^(βsₘ))");
  EXPECT_EQ(formula_text(R"(\left( a + b \right) \le -\log N)"), "(a + b) ≤ −log N");
  EXPECT_EQ(formula_text(R"(\text{softmax rows}_{ij})"), "softmax rowsᵢⱼ");
  EXPECT_EQ(formula_text(R"(W_{qk}^{\top} \hat{x})"), "W_(qk)ᵀx̂");
  EXPECT_EQ(formula_text("0.5 x"), "0.5x");
}

TEST(Formula, in_sentences_are_converted) {
  EXPECT_EQ(sentence_text("It is $a \\le b$, so."), "It is a ≤ b, so.");
  EXPECT_EQ(sentence_markup("a < $b$"), "a &lt; <math><mrow><mi>b</mi></mrow></math>");
}

TEST(Formula, errors_name_the_problem) {
  expect_error([] { formula_text(R"(\sigam)"); }, "formula: \\sigam is not known; did you mean 'sigma'?");
  expect_error([] { formula_text("{a"); }, "expected '}'");
  expect_error([] { formula_text("a}"); }, "found '}' without '{'");
  expect_error([] { formula_text("a^"); }, "found the end, expected more");
  expect_error([] { formula_text("a^2^3"); }, "two scripts at the same place");
  expect_error([] { formula_text("a & b"); }, "found '&'");
  expect_error([] { formula_text(R"(\text a)"); }, "found no {...}");
  expect_error([] { sentence_text("one $ alone"); }, "expected a second one after it");
}

}  // namespace
}  // namespace heed::test
