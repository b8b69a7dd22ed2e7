#include "heed/text/pre_tokenizer.h"

#include <algorithm>

#include "heed/text/json_steps.h"
#include "heed/text/pattern.h"

namespace heed::text {
namespace {

uint32_t u32(size_t i) { return static_cast<uint32_t>(i); }

// Calls cut(span, emit) for every word that is not an added token; emit(begin, end) adds an output word unless it is empty.
template <class Cut>
void cut_each(Words& words, const Cut& cut) {
  words.output.clear();
  const auto emit = [&words](size_t begin, size_t end) {
    if (begin < end) words.output.push_back({{u32(begin), u32(end)}});
  };
  for (const Word& word : words.words) {
    if (word.id >= 0) {
      words.output.push_back(word);
    } else {
      cut(word.at, emit);
    }
  }
  words.words.swap(words.output);
}

// Isolates every character with a class of `separated`, and splits at and drops those with a class of `dropped`.
struct ByClass {
  int dropped, separated;
  bool (*also_separated)(char32_t c);  // may be null; for ASCII characters that BERT classifies differently

  void operator()(Words& words) const {
    const std::string_view text = words.text.text;
    cut_each(words, [&](Span at, const auto& emit) {
      size_t begin = at.begin;
      for (size_t i = at.begin; i < at.end;) {
        const size_t here = i;
        const char32_t c = next_char(text, i);
        const int classes = classes_of(c);
        if (!(classes & (dropped | separated)) && !(also_separated && also_separated(c))) continue;
        emit(begin, here);
        if (!(classes & dropped)) emit(here, i);
        begin = i;
      }
      emit(begin, at.end);
    });
  }
};

// \w+|[^\w\s]+
void split_words_and_marks(Words& words) {
  const std::string_view text = words.text.text;
  cut_each(words, [&](Span at, const auto& emit) {
    size_t begin = at.begin;
    int kind = kSpace;  // of the characters since `begin`: kWord, kSpace or 0
    for (size_t i = at.begin; i < at.end;) {
      const size_t here = i;
      const int classes = classes_of(next_char(text, i)), next_kind = classes & kWord ? kWord : classes & kSpace;
      if (next_kind == kind) continue;
      if (kind != kSpace) emit(begin, here);
      begin = here;
      kind = next_kind;
    }
    if (kind != kSpace) emit(begin, at.end);
  });
}

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior behavior_of(const JsonReader& json, const std::string& fallback) {
  const std::string name = json.text_or("behavior", fallback);
  constexpr std::pair<const char*, Behavior> known[] = {{"Removed", Behavior::removed},
                                                        {"Isolated", Behavior::isolated},
                                                        {"MergedWithPrevious", Behavior::merged_with_previous},
                                                        {"MergedWithNext", Behavior::merged_with_next},
                                                        {"Contiguous", Behavior::contiguous}};
  for (const auto& [known_name, behavior] : known)
    if (name == known_name) return behavior;
  json.refuse("found the behavior ", in_quotes(name), ", expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

// Splits at matches and treats them according to `behavior`. `invert`: the text between the matches counts as matched.
struct BySplit {
  Finder find;
  Behavior behavior;
  bool invert = false;

  void operator()(Words& words) const {
    std::vector<std::pair<Span, bool>> parts;  // span and whether it is matched
    cut_each(words, [&](Span at, const auto& emit) {
      parts.clear();
      words.matches.clear();
      find(std::string_view(words.text.text).substr(at.begin, at.end - at.begin), words.matches);
      uint32_t end = at.begin;
      if (behavior == Behavior::isolated) {  // the common case: every part is a word
        for (const Span match : words.matches) {
          emit(end, at.begin + match.begin);
          end = at.begin + match.end;
          emit(at.begin + match.begin, end);
        }
        return emit(end, at.end);
      }
      const auto add = [&](uint32_t part_end, bool matched) {
        if (part_end > end) parts.push_back({{end, part_end}, matched != invert});
        end = part_end;
      };
      for (const Span match : words.matches) {
        add(at.begin + match.begin, false);
        add(at.begin + match.end, true);
      }
      add(at.end, false);
      emit_parts(parts, emit);
    });
  }

 private:
  template <class Emit>
  void emit_parts(const std::vector<std::pair<Span, bool>>& parts, const Emit& emit) const {
    for (size_t i = 0, last = 0; i < parts.size(); i = last + 1) {
      last = i;
      const auto matched = [&](size_t k) { return parts[k].second; };
      if (behavior == Behavior::removed && matched(i)) continue;
      if (behavior == Behavior::contiguous)
        while (last + 1 < parts.size() && matched(last + 1) == matched(i)) ++last;
      // A match merges with the neighbour on its side, but not with another match.
      if (behavior == Behavior::merged_with_previous && !matched(i) && last + 1 < parts.size() && matched(last + 1)) ++last;
      if (behavior == Behavior::merged_with_next && matched(i) && last + 1 < parts.size() && !matched(last + 1)) ++last;
      emit(parts[i].first.begin, parts[last].first.end);
    }
  }
};

Finder find_class(int classes, bool (*also)(char32_t c) = nullptr) {
  return [classes, also](std::string_view text, std::vector<Span>& matches) {
    for (size_t i = 0; i < text.size();) {
      const size_t here = i;
      const char32_t c = next_char(text, i);
      if ((classes_of(c) & classes) || (also && also(c))) matches.push_back({u32(here), u32(i)});
    }
  };
}

// Prepends `prefix` to every word with needs_prefix(word), and replaces every space by `space`.
template <class NeedsPrefix>
void rebuild(Words& words, const std::string& prefix, const std::string& space, const NeedsPrefix& needs_prefix) {
  const Aligned& in = words.text;
  Aligned out = in.next();
  for (Word& word : words.words) {
    const Span at = word.at;
    const uint32_t begin = u32(out.text.size());
    const bool prefixed = word.id < 0 && at.begin < at.end && needs_prefix(at);
    if (prefixed) out.append(prefix, in.source(at.begin, at.begin + char_bytes(in.text[at.begin])));
    size_t i = at.begin;
    for (size_t gap = i; word.id < 0 && space != " " && (gap = in.text.find(' ', i)) < at.end; i = gap + 1) {
      out.append(in, i, gap);
      out.append(space, in.source(gap, gap + 1));
    }
    out.append(in, i, at.end);
    word.at = {begin, u32(out.text.size())};
  }
  words.text = std::move(out);
}

struct Metaspace {
  std::string mark;
  std::string scheme;  // always, first, never: which words get a leading mark
  bool split = true;

  void operator()(Words& words) const {
    rebuild(words, mark, mark, [&](Span at) {
      const std::string_view rest = std::string_view(words.text.text).substr(at.begin);
      return scheme != "never" && !rest.starts_with(' ') && !rest.starts_with(mark) &&
             (scheme == "always" || words.text.source(at.begin, at.begin + 1).begin == 0);
    });
    if (split) BySplit{find_literal(mark), Behavior::merged_with_next}(words);
  }
};

void add_prefix_space(Words& words) {
  const std::string& text = words.text.text;
  const auto needs_prefix = [&text](Span at) { return text[at.begin] != ' '; };
  if (std::any_of(words.words.begin(), words.words.end(), [&](const Word& word) { return word.id < 0 && needs_prefix(word.at); }))
    rebuild(words, " ", " ", needs_prefix);
}

void add_step(const JsonReader& json, PreTokenizer& out) {
  const std::string type = json.text("type");
  if (out.byte_level) json.refuse("found ", in_quotes(type), " after ByteLevel, expected ByteLevel to be the last step");
  auto& steps = out.steps;
  if (type == "BertPreTokenizer") {
    steps.push_back(ByClass{kSpace, kPunctuation, is_bert_punctuation});
  } else if (type == "ByteLevel") {
    if (json.flag_or("add_prefix_space", true)) steps.push_back(add_prefix_space);
    if (json.flag_or("use_regex", true)) steps.push_back(BySplit{scan_gpt2, Behavior::isolated});
    out.byte_level = true;
  } else if (type == "Whitespace") {
    steps.push_back(split_words_and_marks);
  } else if (type == "WhitespaceSplit") {
    steps.push_back(ByClass{kSpace, 0, nullptr});
  } else if (type == "Punctuation") {
    steps.push_back(BySplit{find_class(kPunctuation, is_bert_punctuation), behavior_of(json, "Isolated")});
  } else if (type == "Digits") {
    steps.push_back(BySplit{find_class(kNumeric), json.flag_or("individual_digits", false) ? Behavior::isolated : Behavior::contiguous});
  } else if (type == "Metaspace") {
    const std::string scheme = json.text_or("prepend_scheme", json.flag_or("add_prefix_space", true) ? "always" : "never");
    if (scheme != "always" && scheme != "first" && scheme != "never")
      json.refuse("found the prepend_scheme ", in_quotes(scheme), ", expected always, first or never");
    steps.push_back(Metaspace{json.text_or("replacement", "\u2581"), scheme, json.flag_or("split", true)});
  } else if (type == "Split") {
    steps.push_back(BySplit{find_pattern(json["pattern"]), behavior_of(json, "none"), json.flag_or("invert", false)});
  } else {
    refuse_type(json, "pre-tokenizer",
                "BertPreTokenizer, ByteLevel, Whitespace, WhitespaceSplit, Punctuation, Digits, Metaspace, Split, Sequence");
  }
}

}  // namespace

PreTokenizer make_pre_tokenizer(const JsonReader& json) {
  PreTokenizer out;
  for (const JsonReader& step : steps_of(json, "pretokenizers")) {
    const size_t before = out.steps.size();
    add_step(step, out);
    for (size_t i = before; i < out.steps.size(); ++i)
      out.steps[i] = [apply = out.steps[i], name = step_name(step)](Words& words) { with_step_name(name, [&] { apply(words); }); };
  }
  return out;
}

PreTokenizer bert_pre_tokenizer() { return {{ByClass{kSpace, kPunctuation, is_bert_punctuation}}, false}; }

PreTokenizer gpt2_pre_tokenizer(bool prefix_space) {
  PreTokenizer out{{BySplit{scan_gpt2, Behavior::isolated}}, true};
  if (prefix_space) out.steps.insert(out.steps.begin(), add_prefix_space);
  return out;
}

}  // namespace heed::text
