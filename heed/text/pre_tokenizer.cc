#include "heed/text/pre_tokenizer.h"

#include <algorithm>

#include "heed/text/pattern.h"

namespace heed::text {
namespace {

uint32_t place(size_t i) { return static_cast<uint32_t>(i); }

// cut(word, keep) for every word that is no added token; keep(begin, end) takes what becomes a word. Empty ones vanish.
template <class Cut>
void cut_each(Words& words, const Cut& cut) {
  words.made.clear();
  const auto keep = [&words](size_t begin, size_t end) {
    if (begin < end) words.made.push_back({{place(begin), place(end)}});
  };
  for (const Word& word : words.words) {
    if (word.id >= 0) {
      words.made.push_back(word);
    } else {
      cut(word.at, keep);
    }
  }
  words.words.swap(words.made);
}

// Cuts before and after every character that has a class of `apart`, and drops those with a class of `dropped`.
struct ByClass {
  int dropped, apart;
  bool (*also_apart)(char32_t c);  // for characters of ASCII that BERT counts otherwise

  void operator()(Words& words) const {
    const std::string_view text = words.text.text;
    cut_each(words, [&](Span at, const auto& keep) {
      size_t begin = at.begin;
      for (size_t i = at.begin; i < at.end;) {
        const size_t here = i;
        const char32_t c = next_char(text, i);
        const int classes = classes_of(c);
        if (!(classes & (dropped | apart)) && !(also_apart && also_apart(c))) continue;
        keep(begin, here);
        if (!(classes & dropped)) keep(here, i);
        begin = i;
      }
      keep(begin, at.end);
    });
  }
};

// \w+|[^\w\s]+
void split_words_and_marks(Words& words) {
  const std::string_view text = words.text.text;
  cut_each(words, [&](Span at, const auto& keep) {
    size_t begin = at.begin;
    int kind = kSpace;  // of the characters since `begin`: kWord, kSpace or neither
    for (size_t i = at.begin; i < at.end;) {
      const size_t here = i;
      const int classes = classes_of(next_char(text, i)), now = classes & kWord ? kWord : classes & kSpace;
      if (now == kind) continue;
      if (kind != kSpace) keep(begin, here);
      begin = here;
      kind = now;
    }
    if (kind != kSpace) keep(begin, at.end);
  });
}

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior behavior_of(const JsonPart& json, const std::string& otherwise) {
  const std::string name = json.text_or("behavior", otherwise);
  constexpr std::pair<const char*, Behavior> known[] = {{"Removed", Behavior::removed},
                                                        {"Isolated", Behavior::isolated},
                                                        {"MergedWithPrevious", Behavior::merged_with_previous},
                                                        {"MergedWithNext", Behavior::merged_with_next},
                                                        {"Contiguous", Behavior::contiguous}};
  for (const auto& [known_name, behavior] : known)
    if (name == known_name) return behavior;
  json.refuse("found the behavior ", in_quotes(name), ", expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

// Cuts at matches, and does with them as told. `invert`: the matches are the words, and what lies between is matched.
struct BySplit {
  Finder find;
  Behavior behavior;
  bool invert = false;

  void operator()(Words& words) const {
    std::vector<std::pair<Span, bool>> parts;  // of a word, and whether they are matched
    cut_each(words, [&](Span at, const auto& keep) {
      parts.clear();
      words.matches.clear();
      find(std::string_view(words.text.text).substr(at.begin, at.end - at.begin), words.matches);
      uint32_t end = at.begin;
      if (behavior == Behavior::isolated) {  // the usual case: every part is a word
        for (const Span match : words.matches) {
          keep(end, at.begin + match.begin);
          end = at.begin + match.end;
          keep(at.begin + match.begin, end);
        }
        return keep(end, at.end);
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
      keep_parts(parts, keep);
    });
  }

 private:
  template <class Keep>
  void keep_parts(const std::vector<std::pair<Span, bool>>& parts, const Keep& keep) const {
    for (size_t i = 0, last = 0; i < parts.size(); i = last + 1) {
      last = i;
      const auto matched = [&](size_t k) { return parts[k].second; };
      if (behavior == Behavior::removed && matched(i)) continue;
      if (behavior == Behavior::contiguous)
        while (last + 1 < parts.size() && matched(last + 1) == matched(i)) ++last;
      // A match joins the neighbour on its side, but no other match.
      if (behavior == Behavior::merged_with_previous && !matched(i) && last + 1 < parts.size() && matched(last + 1)) ++last;
      if (behavior == Behavior::merged_with_next && matched(i) && last + 1 < parts.size() && !matched(last + 1)) ++last;
      keep(parts[i].first.begin, parts[last].first.end);
    }
  }
};

Finder find_class(int classes, bool (*also)(char32_t c) = nullptr) {
  return [classes, also](std::string_view text, std::vector<Span>& matches) {
    for (size_t i = 0; i < text.size();) {
      const size_t here = i;
      const char32_t c = next_char(text, i);
      if ((classes_of(c) & classes) || (also && also(c))) matches.push_back({place(here), place(i)});
    }
  };
}

// Puts `prefix` before every word for which needs(word) holds, and `space` for every space.
template <class Needs>
void rebuild(Words& words, const std::string& prefix, const std::string& space, const Needs& needs) {
  const Aligned& in = words.text;
  Aligned out = in.next();
  for (Word& word : words.words) {
    const Span at = word.at;
    const uint32_t begin = place(out.text.size());
    const bool prefixed = word.id < 0 && at.begin < at.end && needs(at);
    if (prefixed) out.append(prefix, in.source(at.begin, at.begin + char_bytes(in.text[at.begin])));
    size_t i = at.begin;
    for (size_t gap = i; word.id < 0 && space != " " && (gap = in.text.find(' ', i)) < at.end; i = gap + 1) {
      out.append(in, i, gap);
      out.append(space, in.source(gap, gap + 1));
    }
    out.append(in, i, at.end);
    word.at = {begin, place(out.text.size())};
  }
  words.text = std::move(out);
}

struct Metaspace {
  std::string mark;
  std::string scheme;  // always, first, never: where a mark is put before the first word
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
  const auto needs = [&text](Span at) { return text[at.begin] != ' '; };
  if (std::any_of(words.words.begin(), words.words.end(), [&](const Word& word) { return word.id < 0 && needs(word.at); }))
    rebuild(words, " ", " ", needs);
}

void add_step(const JsonPart& json, PreTokenizer& out) {
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
    json.unknown_type("pre-tokenizer",
                      "BertPreTokenizer, ByteLevel, Whitespace, WhitespaceSplit, Punctuation, Digits, Metaspace, Split, Sequence");
  }
}

}  // namespace

PreTokenizer make_pre_tokenizer(const JsonPart& json) {
  PreTokenizer out;
  for (const JsonPart& step : json.steps("pretokenizers")) {
    const size_t before = out.steps.size();
    add_step(step, out);
    for (size_t i = before; i < out.steps.size(); ++i)
      out.steps[i] = [apply = out.steps[i], name = step.named()](Words& words) { naming_step(name, [&] { apply(words); }); };
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
