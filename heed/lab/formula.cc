#include "heed/lab/formula.h"

#include <functional>
#include <map>
#include <vector>

#include "heed/core/check.h"
#include "heed/io/markup.h"
#include "heed/lab/formula_part.h"

namespace heed::lab {
namespace {

using Part = FormulaPart;

std::string tagged(const std::string& name, const std::string& inside) { return "<" + name + ">" + inside + "</" + name + ">"; }

bool is_relation(const Part& part) {
  return part.kind == Part::Kind::sign && std::string_view("=<>≤≥≈∼∝→≠(,").find(part.text) != std::string_view::npos;
}
bool is_function(const Part& part) {
  return part.kind == Part::Kind::upright || (part.kind == Part::Kind::scripts && part.inside[0].kind == Part::Kind::upright);
}

std::string markup_of(const Part& part) {
  const auto row_of = [](const Part& each) { return tagged("mrow", markup_of(each)); };
  switch (part.kind) {
    case Part::Kind::letter: return tagged("mi", escape_markup(part.text));
    case Part::Kind::upright: return "<mi mathvariant=\"normal\">" + escape_markup(part.text) + "</mi>";
    case Part::Kind::bracket: return tagged("mo", escape_markup(part.text));
    case Part::Kind::number: return tagged("mn", part.text);
    case Part::Kind::large: return tagged("mo", escape_markup(part.text));
    case Part::Kind::sign:
      return is_fence(part) ? "<mo stretchy=\"false\" lspace=\"0\" rspace=\"0\">" + part.text + "</mo>"
                            : tagged("mo", escape_markup(part.text));
    case Part::Kind::space: return "<mspace width=\"" + part.text + "em\"></mspace>";
    case Part::Kind::fraction: return tagged("mfrac", row_of(part.inside[0]) + row_of(part.inside[1]));
    case Part::Kind::root: return tagged("msqrt", markup_of(part.inside[0]));
    case Part::Kind::accent:
      return "<mover accent=\"true\">" + row_of(part.inside[0]) + tagged("mo", escape_markup(part.text)) + "</mover>";
    case Part::Kind::row: {
      std::string out;
      for (size_t i = 0; i < part.inside.size(); ++i) {
        const Part& each = part.inside[i];
        const bool own = each.kind == Part::Kind::sign && each.text == "−" && (i == 0 || is_relation(part.inside[i - 1]));
        if (i > 0 && is_function(each) && !is_function(part.inside[i - 1]) && part.inside[i - 1].kind != Part::Kind::sign &&
            part.inside[i - 1].kind != Part::Kind::space)
          out += "<mspace width=\"0.17em\"></mspace>";
        out += own ? "<mo form=\"prefix\">−</mo>" : markup_of(each);
        // A thin space between a function and its argument or factor.
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
      return tagged(name, row_of(part.inside[0]) + (below ? row_of(part.inside[1]) : "") + (above ? row_of(part.inside[2]) : ""));
    }
  }
  return "";
}

// As Unicode sub- or superscripts; empty if a character has none.
std::string small_letters(const std::string& text, bool above) {
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

// Brackets, only around more than one part.
std::string in_brackets(const Part& part) {
  const Part* inner = &part;
  while (inner->kind == Part::Kind::row && inner->inside.size() == 1) inner = &inner->inside[0];
  return inner->kind == Part::Kind::row || inner->kind == Part::Kind::fraction ? "(" + text_of(part) + ")" : text_of(part);
}

bool is_word(const Part& part) {
  const Part& base = part.kind == Part::Kind::scripts ? part.inside[0] : part;
  return base.kind == Part::Kind::large || base.kind == Part::Kind::upright;
}

// Spaces around binary operators and words, none after a unary sign.
std::string row_text(const std::vector<Part>& parts) {
  std::string out;
  bool opens = true;  // the next sign is unary
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
        const std::string text = text_of(script), tiny = small_letters(text, above);
        out += !tiny.empty() ? tiny : (above ? "^" : "_") + in_brackets(script);
      }
      return out;
    }
    default: return part.text;
  }
}

std::string with_formulas(std::string_view sentence, const std::function<std::string(std::string_view)>& plain_text,
                          const std::function<std::string(std::string_view)>& formula) {
  std::string out;
  for (bool inside = false;; inside = !inside) {
    const size_t end = sentence.find('$');
    check(end != std::string_view::npos || !inside, "formula: found one $, expected a second one after it");
    const std::string_view part = sentence.substr(0, end);
    out += inside ? formula(part) : plain_text(part);
    if (end == std::string_view::npos) return out;
    sentence.remove_prefix(end + 1);
  }
}

}  // namespace

// A displayed formula is split at wide spaces into several elements, so that narrow pages can wrap there.
std::string formula_markup(std::string_view tex, bool display) {
  const Part whole = read_formula(tex);
  std::vector<Part> blocks(1);
  for (const Part& part : whole.inside) {
    if (display && part.kind == Part::Kind::space && part.text >= "1")
      blocks.emplace_back();
    else
      blocks.back().inside.push_back(part);
  }
  std::string out;
  for (const Part& block : blocks)
    out += std::string("<math") + (display ? " display=\"block\"" : "") + "><mrow>" + markup_of(block) + "</mrow></math>";
  return out;
}

std::string formula_text(std::string_view tex) { return text_of(read_formula(tex)); }

std::string sentence_markup(std::string_view sentence) {
  return with_formulas(sentence, escape_markup, [](std::string_view tex) { return formula_markup(tex, false); });
}
std::string sentence_text(std::string_view sentence) {
  return with_formulas(
      sentence, [](std::string_view plain_text) { return std::string(plain_text); }, formula_text);
}

}  // namespace heed::lab
