// The parser for the subset of TeX in formula.h.
#include <map>

#include "heed/core/check.h"
#include "heed/core/nearest.h"
#include "heed/lab/formula_part.h"

namespace heed::lab {
namespace {

using Part = FormulaPart;

const std::map<std::string, std::string, std::less<>> kLetters = {
    {"alpha", "α"},   {"beta", "β"}, {"gamma", "γ"}, {"delta", "δ"}, {"epsilon", "ε"}, {"eta", "η"},     {"theta", "θ"}, {"kappa", "κ"},
    {"lambda", "λ"},  {"mu", "μ"},   {"nu", "ν"},    {"pi", "π"},    {"rho", "ρ"},     {"sigma", "σ"},   {"tau", "τ"},   {"phi", "φ"},
    {"chi", "χ"},     {"psi", "ψ"},  {"omega", "ω"}, {"xi", "ξ"},    {"zeta", "ζ"},    {"Gamma", "Γ"},   {"Delta", "Δ"}, {"Theta", "Θ"},
    {"Lambda", "Λ"},  {"Pi", "Π"},   {"Sigma", "Σ"}, {"Phi", "Φ"},   {"Psi", "Ψ"},     {"Omega", "Ω"},   {"ell", "ℓ"},   {"infty", "∞"},
    {"partial", "∂"}, {"top", "⊤"},  {"nabla", "∇"}, {"ldots", "…"}, {"cdots", "⋯"},   {"emptyset", "∅"}};

const std::map<std::string, std::string, std::less<>> kSigns = {
    {"cdot", "·"},   {"times", "×"},  {"le", "≤"},     {"ge", "≥"},         {"ne", "≠"},     {"approx", "≈"}, {"sim", "∼"},
    {"propto", "∝"}, {"to", "→"},     {"mapsto", "↦"}, {"Rightarrow", "⇒"}, {"in", "∈"},     {"pm", "±"},     {"odot", "⊙"},
    {"otimes", "⊗"}, {"oplus", "⊕"},  {"ll", "≪"},     {"gg", "≫"},         {"equiv", "≡"},  {"circ", "∘"},   {"ast", "∗"},
    {"forall", "∀"}, {"mid", "∣"},    {"colon", ":"},  {"lfloor", "⌊"},     {"rfloor", "⌋"}, {"lceil", "⌈"},  {"rceil", "⌉"},
    {"langle", "⟨"}, {"rangle", "⟩"}, {"Vert", "‖"},   {"{", "{"},          {"}", "}"},      {"%", "%"},      {"subset", "⊂"},
    {"neg", "¬"},    {"land", "∧"},   {"cup", "∪"},    {"setminus", "∖"}};

const std::map<std::string, std::string, std::less<>> kLarge = {{"sum", "∑"}, {"prod", "∏"}, {"int", "∫"}};
const std::map<std::string, std::string, std::less<>> kSpaces = {
    {",", "0.17"}, {";", "0.28"}, {" ", "0.28"}, {"quad", "1"}, {"qquad", "2"}};
const std::map<std::string, std::string, std::less<>> kAccents = {{"hat", "^"}, {"tilde", "~"}, {"bar", "¯"}};
constexpr const char* kFunctions[] = {"log", "exp", "max", "min", "sin", "cos", "tanh", "erf", "arg", "lim", "det", "softmax"};
constexpr const char* kUpright[] = {"text", "mathrm", "operatorname", "mathbf"};

// Letters with their own code points.
std::string styled_letter(std::string_view command, std::string_view text) {
  static const std::map<std::string, std::string, std::less<>> letters = {{"mathbb R", "ℝ"},  {"mathbb N", "ℕ"},  {"mathbb Z", "ℤ"},
                                                                          {"mathbb E", "𝔼"},  {"mathcal N", "𝒩"}, {"mathcal O", "𝒪"},
                                                                          {"mathcal L", "ℒ"}, {"mathcal U", "𝒰"}};
  const auto found = letters.find(std::string(command) + " " + std::string(text));
  check(found != letters.end(), "formula: \\", command, "{", text, "} is not known");
  return found->second;
}

class FormulaReader {
 public:
  explicit FormulaReader(std::string_view tex) : tex_(tex) {}

  Part whole() {
    Part out = row('\0');
    check(at_ == tex_.size(), "formula: found '}' without '{' in ", tex_);
    return out;
  }

 private:
  Part row(char end) {
    Part out;
    while (true) {
      skip_spaces();
      if (at_ == tex_.size() || tex_[at_] == '}') break;
      Part next = one();
      if (!(next.kind == Part::Kind::row && next.inside.empty())) out.inside.push_back(with_scripts(std::move(next)));
    }
    check(end == '\0' || (at_ < tex_.size() && tex_[at_] == end), "formula: found the end, expected '", end, "' in ", tex_);
    return out;
  }

  Part with_scripts(Part base) {
    Part below, above;
    bool any = false;
    for (skip_spaces(); at_ < tex_.size() && (tex_[at_] == '^' || tex_[at_] == '_'); skip_spaces()) {
      Part& place = tex_[at_++] == '^' ? above : below;
      check(place.inside.empty(), "formula: two scripts at the same place in ", tex_);
      skip_spaces();
      place.inside.push_back(one());
      any = true;
    }
    if (!any) return base;
    return {Part::Kind::scripts, "", {std::move(base), std::move(below), std::move(above)}};
  }

  Part one() {
    check(at_ < tex_.size(), "formula: found the end, expected more in ", tex_);
    const char letter = tex_[at_];
    if (letter == '{') {
      ++at_;
      Part out = row('}');
      ++at_;
      return out;
    }
    if (letter == '\\') return command();
    if (is_letter(letter)) return {Part::Kind::letter, std::string(1, tex_[at_++])};
    if (is_digit(letter)) {
      const size_t begin = at_;
      while (at_ < tex_.size() && (is_digit(tex_[at_]) || (tex_[at_] == '.' && at_ + 1 < tex_.size() && is_digit(tex_[at_ + 1])))) ++at_;
      return {Part::Kind::number, std::string(tex_.substr(begin, at_ - begin))};
    }
    check(std::string_view("+-=<>()[]|,.;:!/*'").find(letter) != std::string_view::npos, "formula: found '", letter, "' in ", tex_,
          ", expected letters, digits, signs or commands");
    ++at_;
    return {Part::Kind::sign, letter == '-' ? "−" : letter == '\'' ? "′" : std::string(1, letter)};
  }

  Part command() {
    const size_t begin = ++at_;
    while (at_ < tex_.size() && is_letter(tex_[at_])) ++at_;
    if (at_ == begin && at_ < tex_.size()) ++at_;
    const std::string name(tex_.substr(begin, at_ - begin));
    if (const auto found = kLetters.find(name); found != kLetters.end()) return {Part::Kind::letter, found->second};
    if (const auto found = kSigns.find(name); found != kSigns.end()) return {Part::Kind::sign, found->second};
    if (const auto found = kLarge.find(name); found != kLarge.end()) return {Part::Kind::large, found->second};
    if (const auto found = kSpaces.find(name); found != kSpaces.end()) return {Part::Kind::space, found->second};
    if (const auto found = kAccents.find(name); found != kAccents.end()) return {Part::Kind::accent, found->second, {argument()}};
    for (const char* function : kFunctions)
      if (name == function) return {Part::Kind::upright, name};
    for (const char* upright : kUpright)
      if (name == upright) return {Part::Kind::upright, braced_text()};
    if (name == "mathbb" || name == "mathcal") return {Part::Kind::letter, styled_letter(name, braced_text())};
    if (name == "frac") {
      Part above = argument();
      return {Part::Kind::fraction, "", {std::move(above), argument()}};
    }
    if (name == "sqrt") return {Part::Kind::root, "", {argument()}};
    if (name == "left" || name == "right") {
      Part out = argument();
      check(is_fence(out), "formula: \\", name, " before '", out.text, "', expected a bracket in ", tex_);
      out.kind = Part::Kind::bracket;  // it stretches
      return out;
    }
    fail("formula: \\", name, " is not known", did_you_mean(name, names()));
  }

  Part argument() {
    skip_spaces();
    return one();
  }
  std::string braced_text() {
    skip_spaces();
    const size_t end = at_ < tex_.size() && tex_[at_] == '{' ? tex_.find('}', at_) : std::string_view::npos;
    check(end != std::string_view::npos, "formula: found no {...} after a command in ", tex_);
    const std::string out(tex_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }
  static std::vector<std::string> names() {
    std::vector<std::string> out{"frac", "sqrt", "left", "right", "mathbb", "mathcal"};
    for (const auto* table : {&kLetters, &kSigns, &kLarge, &kSpaces, &kAccents})
      for (const auto& [name, text] : *table) out.push_back(name);
    out.insert(out.end(), std::begin(kFunctions), std::end(kFunctions));
    out.insert(out.end(), std::begin(kUpright), std::end(kUpright));
    return out;
  }
  void skip_spaces() {
    while (at_ < tex_.size() && tex_[at_] == ' ') ++at_;
  }
  static bool is_letter(char letter) { return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z'); }
  static bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

  std::string_view tex_;
  size_t at_ = 0;
};

}  // namespace

bool is_fence(const FormulaPart& part) {
  return part.kind == FormulaPart::Kind::sign && std::string_view("()[]|⌊⌋⌈⌉⟨⟩‖{}").find(part.text) != std::string_view::npos;
}

FormulaPart read_formula(std::string_view tex) { return FormulaReader(tex).whole(); }

}  // namespace heed::lab
