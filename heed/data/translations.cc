// Translation pairs from tables: finds the source and the target column.
#include <algorithm>

#include "heed/data/text_parts.h"

namespace heed {
namespace {

const NamePairs kTranslationNames = {{"source", "target"},
                                     {"src", "tgt"},
                                     {"src", "trg"},
                                     {"source_text", "target_text"},
                                     {"source_sentence", "target_sentence"},
                                     {"src_text", "tgt_text"},
                                     {"source_column", "target_column"},
                                     {"original", "translation"},
                                     {"text", "translation"},
                                     {"sentence", "translation"},
                                     {"input", "output"},
                                     {"from", "to"}};

// ISO 639-1, and names of the most common languages.
const Names kLanguages = {
    "aa",      "ab",        "ae",       "af",        "ak",       "am",      "an",     "ar",     "as",      "av",        "ay",
    "az",      "ba",        "be",       "bg",        "bh",       "bi",      "bm",     "bn",     "bo",      "br",        "bs",
    "ca",      "ce",        "ch",       "co",        "cr",       "cs",      "cu",     "cv",     "cy",      "da",        "de",
    "dv",      "dz",        "ee",       "el",        "en",       "eo",      "es",     "et",     "eu",      "fa",        "ff",
    "fi",      "fj",        "fo",       "fr",        "fy",       "ga",      "gd",     "gl",     "gn",      "gu",        "gv",
    "ha",      "he",        "hi",       "ho",        "hr",       "ht",      "hu",     "hy",     "hz",      "ia",        "id",
    "ie",      "ig",        "ii",       "ik",        "io",       "is",      "it",     "iu",     "ja",      "jv",        "ka",
    "kg",      "ki",        "kj",       "kk",        "kl",       "km",      "kn",     "ko",     "kr",      "ks",        "ku",
    "kv",      "kw",        "ky",       "la",        "lb",       "lg",      "li",     "ln",     "lo",      "lt",        "lu",
    "lv",      "mg",        "mh",       "mi",        "mk",       "ml",      "mn",     "mr",     "ms",      "mt",        "my",
    "na",      "nb",        "nd",       "ne",        "ng",       "nl",      "nn",     "no",     "nr",      "nv",        "ny",
    "oc",      "oj",        "om",       "or",        "os",       "pa",      "pi",     "pl",     "ps",      "pt",        "qu",
    "rm",      "rn",        "ro",       "ru",        "rw",       "sa",      "sc",     "sd",     "se",      "sg",        "si",
    "sk",      "sl",        "sm",       "sn",        "so",       "sq",      "sr",     "ss",     "st",      "su",        "sv",
    "sw",      "ta",        "te",       "tg",        "th",       "ti",      "tk",     "tl",     "tn",      "to",        "tr",
    "ts",      "tt",        "tw",       "ty",        "ug",       "uk",      "ur",     "uz",     "ve",      "vi",        "vo",
    "wa",      "wo",        "xh",       "yi",        "yo",       "za",      "zh",     "zu",     "eng",     "deu",       "ger",
    "fra",     "fre",       "spa",      "ita",       "por",      "rus",     "zho",    "chi",    "jpn",     "kor",       "ara",
    "nld",     "pol",       "ces",      "tur",       "ukr",      "english", "german", "french", "spanish", "italian",   "portuguese",
    "russian", "chinese",   "japanese", "korean",    "arabic",   "dutch",   "polish", "czech",  "turkish", "ukrainian", "swedish",
    "danish",  "norwegian", "finnish",  "hungarian", "romanian", "greek",   "hebrew", "hindi"};

bool is_language(std::string name) {
  if (const size_t dot = name.rfind('.'); dot != std::string::npos) name.erase(0, dot + 1);    // "translation.en"
  if (const size_t region = name.find('_'); region != std::string::npos) name.resize(region);  // "en_us"
  return std::find(kLanguages.begin(), kLanguages.end(), name) != kLanguages.end();
}

// The two columns named after languages, if there are exactly two. "id" (Indonesian) counts only if needed: it is usually a row number.
std::vector<int> language_columns(const ColumnNames& names) {
  std::vector<int> found;
  for (const bool with_id : {false, true}) {
    found.clear();
    for (int c = 0; c < names.count(); ++c)
      if (is_language(names.at(c)) && (with_id || names.at(c) != "id")) found.push_back(c);
    if (found.size() == 2) return found;
  }
  return {};
}

struct Sides {
  int source = kNoColumn, target = kNoColumn;

  bool both() const { return source != kNoColumn && target != kNoColumn; }
  // Accepts a proposal for both columns unless it contradicts a known one.
  void propose(std::pair<int, int> proposal) {
    const auto [a, b] = proposal;
    if (both() || a == kNoColumn || b == kNoColumn || a == b) return;
    if ((source == kNoColumn || source == a) && (target == kNoColumn || target == b)) source = a, target = b;
    // A known column may be the other one of the two.
    else if ((source == kNoColumn || source == b) && (target == kNoColumn || target == a))
      source = b, target = a;
  }
};

// Contents are not used: only names or the column order can tell source from target.
Sides by_names(const ColumnNames& names, const LanguageCodes& languages, Sides sides) {
  const int source = names.find(languages.source), target = names.find(languages.target);
  if (sides.source == kNoColumn && source != sides.target) sides.source = source;
  if (sides.target == kNoColumn && target != sides.source) sides.target = target;
  sides.propose(names.find_pair(kTranslationNames));
  if (const std::vector<int> found = language_columns(names); found.size() == 2) sides.propose({found[0], found[1]});
  return sides;
}

bool has_language_header(const Table& table, const TextColumns& columns, const LanguageCodes& languages) {
  return header_is_certain(table, columns) || by_names(ColumnNames(table.rows.front().cells), languages, {}).both();
}

Sides choose(const Table& table, const TextColumns& columns, const LanguageCodes& languages) {
  const int count = static_cast<int>(table.rows.front().cells.size());
  check<FileError>(count >= 2, table.at(table.rows.front()), ": found 1 column, expected at least a source and a target",
                   "; .tsv has tabs between columns, .csv commas or semicolons");
  Sides sides{requested_column(table, "source_column", columns.source), requested_column(table, "target_column", columns.target)};
  sides = by_names(ColumnNames(table.columns), languages, sides);
  if (count == 2) sides.propose({0, 1});
  std::string names;
  for (const std::string& name : table.columns) names += (names.empty() ? "" : ", ") + in_quotes(name, 40);
  check<UsageError>(sides.both(), table.name, ": found ", count, " columns", names.empty() ? "" : ", ", names,
                    ", but cannot tell source and target from their names; choose them with source_column=NAME and target_column=NAME "
                    "(or numbers from 1)");
  check<UsageError>(sides.source != sides.target, table.name,
                    ": found the same column twice, expected different ones for source and target");
  return sides;
}

}  // namespace

bool looks_translated(const Table& table, const TextColumns& columns, const LanguageCodes& languages) {
  if (!columns.source.empty() || !columns.target.empty()) return true;
  if (!columns.text.empty() || !columns.pair.empty() || !columns.label.empty() || table.rows.empty()) return false;
  const ColumnNames names(table.columns.empty() ? table.rows.front().cells : table.columns);
  if (names.find_first(kLabelNames) != kNoColumn && names.find_first(kTextNames) != kNoColumn) return false;
  if (by_names(names, languages, {}).both()) return true;
  if (names.count() != 2 || names.find_first(kLabelNames) != kNoColumn) return false;
  const ColumnContents first = inspect_column(table, 0), second = inspect_column(table, 1);
  const size_t half = table.rows.size() / 2;
  return first.sentences && second.sentences && first.different > half && second.different > half;
}

std::vector<Translation> parse_translations(const std::string& name, std::string_view text, TableKind kind, const TextColumns& columns,
                                            const LanguageCodes& languages, ChosenColumns* chosen) {
  Table table = parse_table(name, text, kind);
  check<FileError>(!table.rows.empty(), name, ": found no rows, expected a source and a target in each");
  if (table.columns.empty() && has_language_header(table, columns, languages)) take_header(table);
  const Sides sides = choose(table, columns, languages);
  record_column(table, "source_column", sides.source, chosen);
  record_column(table, "target_column", sides.target, chosen);
  std::vector<Translation> pairs;
  for (TableRow& row : table.rows) {
    std::string &source = row.cells[static_cast<size_t>(sides.source)], &target = row.cells[static_cast<size_t>(sides.target)];
    if (!source.empty() && !target.empty()) pairs.push_back({std::move(source), std::move(target)});
  }
  check<FileError>(!pairs.empty(), name, ": found no row with text in both columns among ", table.rows.size(), ", expected at least one");
  return pairs;
}

bool is_file_pair(const std::string& where) {
  std::error_code ignored;
  return std::count(where.begin(), where.end(), ',') == 1 && !std::filesystem::exists(where, ignored);
}

std::vector<Translation> read_translations(const std::string& where, const TextColumns& columns, const LanguageCodes& languages,
                                           ChosenColumns* chosen) {
  if (is_file_pair(where)) {
    const size_t comma = where.find(',');
    return read_parallel(where.substr(0, comma), where.substr(comma + 1));
  }
  return parse_translations(where, read_text_or_gzip(where), table_kind(where), columns, languages, chosen);
}

}  // namespace heed
