// Splits plain text into documents and documents into sentences.
#include <algorithm>
#include <set>

#include "heed/data/text_parts.h"

namespace heed {
namespace {

using WordSet = std::set<std::string_view>;

// Abbreviations that never end a sentence.
const WordSet kNeverLast = {"Mr",   "Mrs",  "Ms",  "Dr",  "Prof", "St",     "Mt",  "Gen", "Brig", "Col", "Capt", "Lt",     "Sgt",
                            "Maj",  "Cmdr", "Adm", "Rev", "Hon",  "Gov",    "Sen", "Rep", "Pres", "Fr",  "Hr",   "Messrs", "Mme",
                            "Mlle", "vs",   "cf",  "viz", "ca",   "approx", "Fig", "fig", "Figs", "Vol", "vol",  "Art",    "Sec",
                            "Sect", "Ch",   "pp",  "al",  "Ft",   "bzw",    "e.g", "i.e", "z.B",  "d.h", "u.a"};
// Abbreviations only before a number; "no." alone is a word.
const WordSet kBeforeNumbers = {"No", "no", "Nos", "nos", "Nr", "p"};
// Abbreviations that end a sentence only if one of kSentenceStarters follows; "the U.S. Army" continues.
const WordSet kMaybeLast = {"a.m", "p.m", "etc", "Inc", "Co",  "Corp", "Ltd", "Jr",  "Sr",   "Bros", "Ph.D", "B.A", "M.A", "M.D",
                            "usw", "Jan", "Feb", "Mar", "Apr", "Jun",  "Jul", "Aug", "Sept", "Sep",  "Oct",  "Nov", "Dec", "Esq"};
const WordSet kSentenceStarters = {"A",     "After", "All",     "Also",  "Although", "An",   "And",   "As",    "At",    "Because", "Before",
                                   "But",   "By",    "During",  "Each",  "Every",    "For",  "From",  "Had",   "He",    "Her",     "Here",
                                   "His",   "How",   "However", "I",     "If",       "In",   "It",    "Its",   "Let",   "Many",    "More",
                                   "Most",  "My",    "No",      "Nor",   "Not",      "Now",  "Of",    "On",    "Once",  "One",     "Or",
                                   "Our",   "She",   "Since",   "So",    "Some",     "Such", "That",  "The",   "Their", "Then",    "There",
                                   "These", "They",  "This",    "Those", "Thus",     "To",   "Under", "Until", "We",    "What",    "When",
                                   "Where", "Which", "While",   "Who",   "Why",      "With", "Yet",   "You",   "Your"};

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
bool is_upper(char letter) { return letter >= 'A' && letter <= 'Z'; }

// A character of valid UTF-8 and its size.
struct Character {
  char32_t code = 0;
  size_t bytes = 1;
};
Character character_at(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<char32_t>(static_cast<unsigned char>(text[k])); };
  const char32_t first = byte(i);
  const size_t bytes = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (bytes == 1 || i + bytes > text.size()) return {first, 1};
  char32_t code = first & (0x7FU >> bytes);
  for (size_t k = 1; k < bytes; ++k) code = code << 6 | (byte(i + k) & 0x3F);
  return {code, bytes};
}

bool one_of(std::u32string_view set, char32_t code) { return set.find(code) != std::u32string_view::npos; }
bool ends_sentence(char32_t code) { return one_of(U".!?\u2026", code); }
bool ends_without_space(char32_t code) { return one_of(U"\u3002\uFF01\uFF1F", code); }  // Chinese and Japanese
bool closes(char32_t code) { return one_of(U"\"')]}\u2019\u201D\u00BB\u300D\u300F", code); }
bool opens(char32_t code) { return one_of(U"\"'([{\u2018\u201C\u201E\u00AB\u00BF\u00A1-\u2013\u2014", code); }
// Latin, Greek and Cyrillic. Letters of scripts without case may start a sentence.
bool is_lower(char32_t code) {
  const auto within = [&](char32_t first, char32_t last) { return code >= first && code <= last; };
  return within('a', 'z') || (within(0xDF, 0xFF) && code != 0xF7) || (within(0x100, 0x17F) && code % 2 == 1) || within(0x3AC, 0x3CE) ||
         within(0x430, 0x45F);
}

// The word before `end`, without opening quotes and brackets.
std::string_view word_before(std::string_view text, size_t begin, size_t end) {
  size_t from = end;
  while (from > begin && !is_whitespace(text[from - 1])) --from;
  while (from < end && opens(character_at(text, from).code)) from += character_at(text, from).bytes;
  return text.substr(from, end - from);
}

std::string_view word_at(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && (is_upper(text[end]) || is_lower(static_cast<unsigned char>(text[end])))) ++end;
  return text.substr(begin, end - begin);
}

// Whether the full stop at `stop` is part of an abbreviation. next: start of the next word, after opening quotes.
bool is_abbreviation(std::string_view text, size_t begin, size_t stop, size_t next) {
  const std::string_view word = word_before(text, begin, stop);
  if (kNeverLast.contains(word)) return true;
  if (kBeforeNumbers.contains(word)) return is_digit(text[next]);
  // "3. Resolved ...", "IV. The Navy": a list number.
  const bool is_list_number =
      !word.empty() && word.size() <= 4 && (std::all_of(word.begin(), word.end(), is_digit) || word.find_first_not_of("IVX") == word.npos);
  if (is_list_number && word.data() == text.data() + begin) return true;
  const bool is_initial = word.size() == 1 && is_upper(word[0]);
  const bool dotted = word.size() >= 3 && word[1] == '.' && word.size() % 2 == 1 && is_upper(word[0]);  // U.S, J.R.R
  return (is_initial || dotted || kMaybeLast.contains(word)) && !kSentenceStarters.contains(word_at(text, next));
}

// Collapses every run of whitespace to one space.
std::string collapse_spaces(std::string_view text) {
  std::string out;
  for (const char letter : trimmed(text))
    if (!is_whitespace(letter))
      out += letter;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  return out;
}

bool is_text_file(const Path& path) { return path.extension() == ".txt" || path.string().ends_with(".txt.gz"); }

void add_documents(const Path& path, std::vector<std::vector<std::string>>& documents) {
  std::string document;
  const auto finish = [&] {
    std::vector<std::string> sentences = sentences_of(document);
    if (!sentences.empty()) documents.push_back(std::move(sentences));
    document.clear();
  };
  const size_t before = documents.size();
  const std::string text = read_text_or_gzip(path);
  TextLines lines(text);
  for (std::string_view line; lines.next(line);) {
    if (trimmed(line).empty())
      finish();
    else
      document.append(line).append("\n");
  }
  finish();
  check<FileError>(documents.size() > before, path.string(), ": found no text, expected some");
}

}  // namespace

std::vector<std::string> sentences_of(std::string_view whole) {
  const std::string text = collapse_spaces(whole);
  std::vector<std::string> sentences;
  size_t begin = 0;
  const auto cut = [&](size_t end) {
    const std::string_view sentence = trimmed(std::string_view(text).substr(begin, end - begin));
    if (!sentence.empty()) sentences.emplace_back(sentence);
    begin = end;
  };
  for (size_t i = 0; i < text.size();) {
    const Character mark = character_at(text, i);
    const size_t stop = i;
    i += mark.bytes;
    const bool spaceless = ends_without_space(mark.code);
    if (!spaceless && !ends_sentence(mark.code)) continue;
    bool alone = mark.code == '.';  // a single full stop may mark an abbreviation
    for (; i < text.size(); i += character_at(text, i).bytes) {
      const char32_t code = character_at(text, i).code;
      if (!ends_sentence(code) && !ends_without_space(code) && !closes(code)) break;
      alone = false;
    }
    if (i == text.size()) break;
    if (!spaceless && text[i] != ' ') continue;
    size_t next = text[i] == ' ' ? i + 1 : i;
    while (next < text.size() && (opens(character_at(text, next).code) || text[next] == ' ')) next += character_at(text, next).bytes;
    if (next == text.size()) break;
    const char32_t first = character_at(text, next).code;
    if (is_lower(first) || ends_sentence(first)) continue;  // ". . ." is one ending
    if (alone && is_abbreviation(text, begin, stop, next)) continue;
    cut(i);
    while (begin < text.size() && text[begin] == ' ') ++begin;
  }
  cut(text.size());
  return sentences;
}

std::vector<std::vector<std::string>> read_documents(const Path& path) {
  std::vector<std::vector<std::string>> documents;
  if (!std::filesystem::is_directory(path)) {
    add_documents(path, documents);
    return documents;
  }
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (is_text_file(entry.path())) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  check<FileError>(!files.empty(), path.string(), ": found no .txt or .txt.gz in this folder, expected at least one");
  for (const Path& file : files) add_documents(file, documents);
  return documents;
}

}  // namespace heed
