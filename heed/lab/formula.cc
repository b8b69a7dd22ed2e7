#include "heed/lab/formula.h"

#include <functional>
#include <map>
#include <vector>

#include "heed/core/check.h"
#include "heed/core/nearest.h"
#include "heed/io/markup.h"

namespace heed::lab {
namespace {

struct Part {
  enum class Kind { letter, upright, number, sign, bracket, large, space, row, fraction, root, scripts, accent };
  Kind kind = Kind::row;
  std::string text = {};          // of letters, numbers and signs; the mark of an accent
  std::vector<Part> inside = {};  // fraction: above, below; scripts: base, below, above, where an empty row is none
};

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

// ℝ and 𝒩 have places of their own among letters.
std::string fancy(std::string_view command, std::string_view text) {
  static const std::map<std::string, std::string, std::less<>> letters = {{"mathbb R", "ℝ"},  {"mathbb N", "ℕ"},  {"mathbb Z", "ℤ"},
                                                                          {"mathbb E", "𝔼"},  {"mathcal N", "𝒩"}, {"mathcal O", "𝒪"},
                                                                          {"mathcal L", "ℒ"}, {"mathcal U", "𝒰"}};
  const auto found = letters.find(std::string(command) + " " + std::string(text));
  check(found != letters.end(), "formula: \\", command, "{", text, "} is not known");
  return found->second;
}

bool is_fence(const Part& part) {
  return part.kind == Part::Kind::sign && std::string_view("()[]|⌊⌋⌈⌉⟨⟩‖{}").find(part.text) != std::string_view::npos;
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
      if (name == upright) return {Part::Kind::upright, words()};
    if (name == "mathbb" || name == "mathcal") return {Part::Kind::letter, fancy(name, words())};
    if (name == "frac") {
      Part above = argument();
      return {Part::Kind::fraction, "", {std::move(above), argument()}};
    }
    if (name == "sqrt") return {Part::Kind::root, "", {argument()}};
    if (name == "left" || name == "right") {
      Part out = argument();
      check(is_fence(out), "formula: \\", name, " stands before '", out.text, "', expected a bracket in ", tex_);
      out.kind = Part::Kind::bracket;  // it stretches
      return out;
    }
    fail("formula: \\", name, " is not known", did_you_mean(name, names()));
  }

  Part argument() {
    skip_spaces();
    return one();
  }
  std::string words() {
    skip_spaces();
    const size_t end = at_ < tex_.size() && tex_[at_] == '{' ? tex_.find('}', at_) : std::string_view::npos;
    check(end != std::string_view::npos, "formula: found no {...} behind a command in ", tex_);
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

std::string tag(const std::string& name, const std::string& inside) { return "<" + name + ">" + inside + "</" + name + ">"; }

bool is_relation(const Part& part) {
  return part.kind == Part::Kind::sign && std::string_view("=<>≤≥≈∼∝→≠(,").find(part.text) != std::string_view::npos;
}
bool is_function(const Part& part) {
  return part.kind == Part::Kind::upright || (part.kind == Part::Kind::scripts && part.inside[0].kind == Part::Kind::upright);
}

std::string markup_of(const Part& part) {
  const auto row_of = [](const Part& each) { return tag("mrow", markup_of(each)); };
  switch (part.kind) {
    case Part::Kind::letter: return tag("mi", in_markup(part.text));
    case Part::Kind::upright: return "<mi mathvariant=\"normal\">" + in_markup(part.text) + "</mi>";
    case Part::Kind::bracket: return tag("mo", in_markup(part.text));
    case Part::Kind::number: return tag("mn", part.text);
    case Part::Kind::large: return tag("mo", in_markup(part.text));
    case Part::Kind::sign:
      return is_fence(part) ? "<mo stretchy=\"false\" lspace=\"0\" rspace=\"0\">" + part.text + "</mo>" : tag("mo", in_markup(part.text));
    case Part::Kind::space: return "<mspace width=\"" + part.text + "em\"></mspace>";
    case Part::Kind::fraction: return tag("mfrac", row_of(part.inside[0]) + row_of(part.inside[1]));
    case Part::Kind::root: return tag("msqrt", markup_of(part.inside[0]));
    case Part::Kind::accent: return "<mover accent=\"true\">" + row_of(part.inside[0]) + tag("mo", in_markup(part.text)) + "</mover>";
    case Part::Kind::row: {
      std::string out;
      for (size_t i = 0; i < part.inside.size(); ++i) {
        const Part& each = part.inside[i];
        const bool own = each.kind == Part::Kind::sign && each.text == "−" && (i == 0 || is_relation(part.inside[i - 1]));
        if (i > 0 && is_function(each) && !is_function(part.inside[i - 1]) && part.inside[i - 1].kind != Part::Kind::sign &&
            part.inside[i - 1].kind != Part::Kind::space)
          out += "<mspace width=\"0.17em\"></mspace>";
        out += own ? "<mo form=\"prefix\">−</mo>" : markup_of(each);
        // A function stands apart from what it is taken of and from what it is multiplied with.
        if (i + 1 < part.inside.size() && is_function(each) && !is_fence(part.inside[i + 1])) out += "<mspace width=\"0.17em\"></mspace>";
      }
      return out;
    }
    case Part::Kind::scripts: {
      const bool below = !part.inside[1].inside.empty(), above = !part.inside[2].inside.empty();
      const bool far = part.inside[0].kind == Part::Kind::large;
      const std::string name = below && above ? (far ? "munderover" : "msubsup")
                               : below        ? (far ? "munder" : "msub")
                               : far          ? "mover"
                                              : "msup";
      return tag(name, row_of(part.inside[0]) + (below ? row_of(part.inside[1]) : "") + (above ? row_of(part.inside[2]) : ""));
    }
  }
  return "";
}

// Letter by letter in small; nothing where one has no small form.
std::string small(const std::string& text, bool above) {
  static const std::map<std::string, std::string, std::less<>> up = {
      {"0", "⁰"}, {"1", "¹"}, {"2", "²"}, {"3", "³"}, {"4", "⁴"}, {"5", "⁵"}, {"6", "⁶"}, {"7", "⁷"}, {"8", "⁸"},
      {"9", "⁹"}, {"−", "⁻"}, {"+", "⁺"}, {"n", "ⁿ"}, {"i", "ⁱ"}, {"h", "ʰ"}, {"T", "ᵀ"}, {"⊤", "ᵀ"}, {"′", "′"}};
  static const std::map<std::string, std::string, std::less<>> down = {
      {"0", "₀"}, {"1", "₁"}, {"2", "₂"}, {"3", "₃"}, {"4", "₄"}, {"5", "₅"}, {"6", "₆"}, {"7", "₇"}, {"8", "₈"},
      {"9", "₉"}, {"i", "ᵢ"}, {"j", "ⱼ"}, {"k", "ₖ"}, {"m", "ₘ"}, {"n", "ₙ"}, {"h", "ₕ"}, {"v", "ᵥ"}, {"o", "ₒ"},
      {"p", "ₚ"}, {"x", "ₓ"}, {"s", "ₛ"}, {"t", "ₜ"}, {"l", "ₗ"}, {"β", "ᵦ"}, {"+", "₊"}, {"−", "₋"}};
  const auto& table = above ? up : down;
  std::string out;
  for (const Letter& letter : letters_of(text)) {
    const auto found = table.find(letter.bytes);
    if (found == table.end()) return "";
    out += found->second;
  }
  return out;
}

std::string text_of(const Part& part);

// Only around what consists of several parts.
std::string in_brackets(const Part& part) {
  const Part* inner = &part;
  while (inner->kind == Part::Kind::row && inner->inside.size() == 1) inner = &inner->inside[0];
  return inner->kind == Part::Kind::row || inner->kind == Part::Kind::fraction ? "(" + text_of(part) + ")" : text_of(part);
}

bool is_word(const Part& part) {
  const Part& base = part.kind == Part::Kind::scripts ? part.inside[0] : part;
  return base.kind == Part::Kind::large || base.kind == Part::Kind::upright;
}

// Spaces around signs between two things and around words; none behind a sign that belongs to what follows.
std::string row_text(const std::vector<Part>& parts) {
  std::string out;
  bool opens = true;  // nothing stands before the next part that it could be added to
  bool glued = false;
  for (const Part& each : parts) {
    const bool sign = each.kind == Part::Kind::sign || each.kind == Part::Kind::bracket;
    const bool close = sign && std::string_view("()[]|,.;:!/′⌊⌋⌈⌉⟨⟩‖{}%·").find(each.text) != std::string_view::npos;
    const bool own = sign && opens && (each.text == "−" || each.text == "+");
    const bool free = out.empty() || out.ends_with(' ') || out.ends_with('(') || out.ends_with('[') || glued;
    if (((sign && !close) || is_word(each)) && !free) out += ' ';
    out += text_of(each);
    if ((sign && !close && !own) || (is_word(each) && &each != &parts.back()) || (sign && each.text == ",")) out += ' ';
    opens = (sign && std::string_view(")]|!′⌋⌉⟩}%").find(each.text) == std::string_view::npos) || (opens && each.kind == Part::Kind::space);
    glued = own;
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

std::string text_of(const Part& part) {
  switch (part.kind) {
    case Part::Kind::space: return " ";
    case Part::Kind::fraction: return in_brackets(part.inside[0]) + "/" + in_brackets(part.inside[1]);
    case Part::Kind::root: return "√" + in_brackets(part.inside[0]);
    case Part::Kind::accent: {
      const std::string mark = part.text == "^" ? "\u0302" : part.text == "~" ? "\u0303" : "\u0304";
      return text_of(part.inside[0]) + mark;
    }
    case Part::Kind::row: return row_text(part.inside);
    case Part::Kind::scripts: {
      std::string out = text_of(part.inside[0]);
      for (const bool above : {false, true}) {
        const Part& script = part.inside[above ? 2 : 1];
        if (script.inside.empty()) continue;
        const std::string text = text_of(script), tiny = small(text, above);
        out += !tiny.empty() ? tiny : (above ? "^" : "_") + in_brackets(script);
      }
      return out;
    }
    default: return part.text;
  }
}

std::string with_formulas(std::string_view sentence, const std::function<std::string(std::string_view)>& words,
                          const std::function<std::string(std::string_view)>& formula) {
  std::string out;
  for (bool inside = false;; inside = !inside) {
    const size_t end = sentence.find('$');
    check(end != std::string_view::npos || !inside, "formula: found one $, expected another behind it");
    const std::string_view piece = sentence.substr(0, end);
    out += inside ? formula(piece) : words(piece);
    if (end == std::string_view::npos) return out;
    sentence.remove_prefix(end + 1);
  }
}

}  // namespace

// In a line of its own, pieces between wide spaces are elements of their own, so that narrow pages can break the line there.
std::string formula_markup(std::string_view tex, bool display) {
  const Part whole = FormulaReader(tex).whole();
  std::vector<Part> pieces(1);
  for (const Part& part : whole.inside) {
    if (display && part.kind == Part::Kind::space && part.text >= "1")
      pieces.emplace_back();
    else
      pieces.back().inside.push_back(part);
  }
  std::string out;
  for (const Part& piece : pieces)
    out += std::string("<math") + (display ? " display=\"block\"" : "") + "><mrow>" + markup_of(piece) + "</mrow></math>";
  return out;
}

std::string formula_text(std::string_view tex) { return text_of(FormulaReader(tex).whole()); }

std::string sentence_markup(std::string_view sentence) {
  return with_formulas(sentence, in_markup, [](std::string_view tex) { return formula_markup(tex, false); });
}
std::string sentence_text(std::string_view sentence) {
  return with_formulas(
      sentence, [](std::string_view words) { return std::string(words); }, formula_text);
}

}  // namespace heed::lab
