#include "heed/text/decoder.h"

#include "heed/text/byte_chars.h"
#include "heed/text/json_steps.h"
#include "heed/text/pattern.h"
#include "heed/text/unicode.h"

namespace heed::text {
namespace {

using Tokens = std::vector<std::string>;

void replace_all(std::string& text, std::string_view old, std::string_view replacement) {
  size_t at = old.empty() ? text.npos : text.find(old);
  if (at == text.npos) return;
  std::string out;
  size_t done = 0;
  for (; at != text.npos; at = text.find(old, done)) {
    out.append(text, done, at - done).append(replacement);
    done = at + old.size();
  }
  text = out.append(text, done);
}

// Removes the spaces that splitting at punctuation left in English text.
void clean_up(std::string& text) {
  constexpr std::pair<const char*, const char*> spaced[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [old, replacement] : spaced) replace_all(text, old, replacement);
}

void fuse(Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  tokens.clear();
  tokens.push_back(std::move(all));
}

int hex_digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Tokens like <0x0A> are bytes; a run that is not valid UTF-8 becomes one U+FFFD per byte.
void decode_fallback(Tokens& tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (find_bad_utf8(bytes) == bytes.npos) {
      out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), utf8(kReplacement));
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    const bool framed = token.size() == 6 && token.starts_with("<0x") && token.ends_with('>');
    const int high = framed ? hex_digit(token[3]) : -1, low = framed ? hex_digit(token[4]) : -1;
    if (high >= 0 && low >= 0) {
      bytes += static_cast<char>(high * 16 + low);
    } else {
      flush();
      out.push_back(std::move(token));
    }
  }
  flush();
  tokens = std::move(out);
}

// Removes up to `first` characters `c` from the start of each token, and up to `last` from its end.
void strip_tokens(Tokens& tokens, const std::string& c, int64_t first, int64_t last) {
  for (std::string& token : tokens) {
    std::string_view rest = token;
    for (int64_t i = 0; i < first && !c.empty() && rest.starts_with(c); ++i) rest.remove_prefix(c.size());
    for (int64_t i = 0; i < last && !c.empty() && rest.ends_with(c); ++i) rest.remove_suffix(c.size());
    token = std::string(rest);
  }
}

size_t bytes_in(const Tokens& tokens) {
  size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  return bytes;
}

// max_bytes: limit on the total size of the tokens
void replace_matches(Tokens& tokens, const Finder& find, const std::string& content, size_t max_bytes) {
  std::vector<Span> matches;
  size_t bytes = bytes_in(tokens);
  for (std::string& token : tokens) {
    matches.clear();
    find(token, matches);
    bytes += matches.size() * content.size();
    if (bytes > max_bytes + token.size())
      fail<TextTooLongError>("the tokens grew to more than ", max_bytes, " bytes, expected at most 16 times their size plus 1024");
    bytes -= token.size();
    std::string out;
    size_t at = 0;
    for (const Span match : matches) {
      out.append(token, at, match.begin - at).append(content);
      at = match.end;
    }
    token = out.append(token, at);
    bytes += token.size() - matches.size() * content.size();
  }
}

using Step = std::function<void(Tokens& tokens, size_t max_bytes)>;

Step without_limit(Decoder decoder) {
  return [decoder = std::move(decoder)](Tokens& tokens, size_t) { decoder(tokens); };
}

Decoder make_shrinking(const JsonReader& json) {
  const std::string type = json.text("type");
  if (type == "WordPiece") return wordpiece_decoder(json.text_or("prefix", "##"), json.flag_or("cleanup", true));
  if (type == "ByteLevel") return byte_level_decoder();
  if (type == "Metaspace") {
    const bool prefixed = json.text_or("prepend_scheme", json.flag_or("add_prefix_space", true) ? "always" : "never") != "never";
    return [mark = json.text_or("replacement", "\u2581"), prefixed](Tokens& tokens) {
      for (size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], mark, i == 0 && prefixed ? "" : " ");
    };
  }
  if (type == "BPEDecoder")
    return [suffix = json.text_or("suffix", "</w>")](Tokens& tokens) {
      for (size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], suffix, i + 1 < tokens.size() ? " " : "");
    };
  if (type == "ByteFallback") return decode_fallback;
  if (type == "Fuse") return fuse;
  if (type == "Strip")
    return [c = json.text("content"), first = json.whole_or("start", 0), last = json.whole_or("stop", 0)](Tokens& tokens) {
      strip_tokens(tokens, c, first, last);
    };
  refuse_type(json, "decoder", "WordPiece, ByteLevel, Metaspace, BPEDecoder, ByteFallback, Fuse, Strip, Replace, Sequence");
}

Step make_decoder_step(const JsonReader& json) {
  if (json.text("type") != "Replace") return without_limit(make_shrinking(json));
  return [find = find_pattern(json["pattern"]), content = json.text("content")](Tokens& tokens, size_t max_bytes) {
    replace_matches(tokens, find, content, max_bytes);
  };
}

}  // namespace

Decoder make_decoder(const JsonReader& json) {
  std::vector<std::pair<Step, std::string>> steps;
  for (const JsonReader& step : steps_of(json, "decoders")) steps.emplace_back(make_decoder_step(step), step_name(step));
  return [steps](Tokens& tokens) {
    const size_t max_bytes = growth_limit(bytes_in(tokens));
    for (const auto& [step, name] : steps) with_step_name(name, [&, &apply = step] { apply(tokens, max_bytes); });
  };
}

Decoder wordpiece_decoder(const std::string& prefix, bool cleanup) {
  return [prefix, cleanup](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) token = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
      if (cleanup) clean_up(token);
    }
  };
}

Decoder byte_level_decoder() {
  return [](Tokens& tokens) {
    std::string all, bytes;
    for (const std::string& token : tokens) all += from_byte_chars(token, bytes) ? bytes : token;
    tokens.assign(1, repaired_utf8(all));
  };
}

Decoder clip_decoder(Decoder inner, const std::string& word_suffix) {
  return [inner = std::move(inner), word_suffix](Tokens& tokens) {
    inner(tokens);
    fuse(tokens);
    std::string& text = tokens.front();
    replace_all(text, word_suffix, " ");
    // Python's strip() counts the separators U+001C to U+001F as spaces too.
    const auto blank = [&](size_t i) { return is_space(char_at(text, i)) || (text[i] >= 0x1C && text[i] <= 0x1F); };
    size_t begin = 0, end = text.size();
    while (begin < end && blank(begin)) begin += char_bytes(text[begin]);
    while (end > begin && blank(char_before(text, end))) end = char_before(text, end);
    text = text.substr(begin, end - begin);
  };
}

Decoder spaced_decoder() {
  return [](Tokens& tokens) {
    for (size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, 1, ' ');
  };
}

}  // namespace heed::text
