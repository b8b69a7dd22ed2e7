// heed data look for texts: counts, labels, lengths and samples.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>

#include "heed/cli/data.h"
#include "heed/cli/display_text.h"
#include "heed/cli/predict.h"
#include "heed/data/text_parts.h"
#include "heed/io/paths.h"
#include "heed/train/doubtful_labels.h"
#include "heed/train/translate_data.h"

namespace heed::cli {
namespace {

constexpr size_t kLabelsShown = 20, kCharBar = 40, kWidest = 100;

class Lengths {
 public:
  void add(const std::string& text) { words_.push_back(word_count(text)); }

  Json json() {
    sort();
    return {{"least", words_.front()}, {"median", words_[words_.size() / 2]}, {"most", words_.back()}, {"all", sum()}};
  }
  std::string text() {
    sort();
    std::ostringstream out;
    out << words_.front() << " to " << words_.back() << " words, median " << words_[words_.size() / 2] << ", " << sum() << " in all";
    return out.str();
  }

 private:
  void sort() { std::sort(words_.begin(), words_.end()); }
  int64_t sum() const {
    int64_t out = 0;
    for (const int64_t words : words_) out += words;
    return out;
  }

  std::vector<int64_t> words_ = {};  // per text; never empty: readers refuse data without texts
};

// Up to `lines` evenly spaced indices below `count`.
std::vector<size_t> sample_indices(size_t count, int64_t lines) {
  const size_t some = std::min(count, static_cast<size_t>(std::max<int64_t>(lines, 0)));
  std::vector<size_t> out;
  for (size_t i = 0; i < some; ++i) out.push_back(i * count / some);
  return out;
}

Json columns_json(const ChosenColumns& columns) {
  Json out = Json::object();
  for (const ChosenColumn& each : columns) out[each.setting] = each.word();
  return out;
}

void look_at_labelled(const std::string& where, const TextLookOptions& options) {
  ChosenColumns columns;
  const std::vector<LabelledText> rows = read_labelled(where, options.columns, &columns);
  std::map<std::string, size_t> counts;
  Lengths texts, pairs;
  for (const LabelledText& row : rows) {
    ++counts[row.label];
    texts.add(row.text);
    if (row.pair) pairs.add(*row.pair);
  }
  const bool has_pairs = rows.front().pair.has_value();
  if (const LabelDoubts doubts = doubts_about_labels(rows); !doubts.error.empty() || !doubts.warning.empty())
    std::cerr << "heed: warning: " << where << ": " << doubts.error << doubts.warning << '\n';
  if (options.json) {
    Json samples = Json::array();
    for (const size_t i : sample_indices(rows.size(), options.lines)) {
      samples.push_back({{"label", rows[i].label}, {"text", rows[i].text}});
      if (has_pairs) samples.back()["pair"] = *rows[i].pair;
    }
    Json json{{"kind", "labelled"}, {"source", where},       {"rows", rows.size()},
              {"labels", counts},   {"words", texts.json()}, {"samples", samples}};
    if (has_pairs) json["pair_words"] = pairs.json();
    if (!columns.empty()) json["columns"] = columns_json(columns);
    return print_json_line(json);
  }
  std::vector<std::pair<std::string, size_t>> labels(counts.begin(), counts.end());
  if (labels.size() > kLabelsShown)  // show the most frequent; few labels stay sorted by name
    std::stable_sort(labels.begin(), labels.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  size_t most = 0, widest = 5;
  for (const auto& [label, count] : labels) {
    most = std::max(most, count);
    widest = std::max(widest, std::min<size_t>(display_text(label, 30).size(), 33));
  }
  std::cout << where << ": " << rows.size() << (has_pairs ? " labelled pairs, " : " labelled texts, ") << labels.size()
            << (labels.size() == 1 ? " label\n" : " labels\n");
  if (!columns.empty()) std::cout << columns_text(where, columns) << '\n';
  std::cout << (has_pairs ? "first:  " : "texts:  ") << texts.text() << '\n';
  if (has_pairs) std::cout << "second: " << pairs.text() << '\n';
  std::cout << '\n' << padded("label", static_cast<int64_t>(widest)) << "      rows    share\n";
  for (size_t i = 0; i < std::min(labels.size(), kLabelsShown); ++i) {
    const auto& [label, count] = labels[i];
    std::cout << padded(display_text(label, 30), static_cast<int64_t>(widest)) << std::setw(10) << count << std::setw(9)
              << percent(static_cast<float>(count) / static_cast<float>(rows.size())) << "  "
              << std::string(std::max<size_t>(1, count * kCharBar / most), '#') << '\n';
  }
  if (labels.size() > kLabelsShown) std::cout << "... and " << labels.size() - kLabelsShown << " more\n";
  std::cout << '\n';
  for (const size_t i : sample_indices(rows.size(), options.lines))
    std::cout << padded(display_text(rows[i].label, 30), static_cast<int64_t>(widest)) << "  " << display_text(rows[i].text, kWidest)
              << (has_pairs ? " | " + display_text(*rows[i].pair, kWidest) : "") << '\n';
}

void look_at_parallel(const std::string& where, const std::vector<Translation>& pairs, const ChosenColumns& columns,
                      const TextLookOptions& options) {
  Lengths sources, targets;
  for (const Translation& pair : pairs) {
    sources.add(pair.source);
    targets.add(pair.target);
  }
  const std::vector<size_t> some = sample_indices(pairs.size(), options.lines);
  if (options.json) {
    Json samples = Json::array();
    for (const size_t i : some) samples.push_back({{"source", pairs[i].source}, {"target", pairs[i].target}});
    Json json{{"kind", "parallel"},
              {"source", where},
              {"pairs", pairs.size()},
              {"source_words", sources.json()},
              {"target_words", targets.json()},
              {"samples", samples}};
    if (!columns.empty()) json["columns"] = columns_json(columns);
    return print_json_line(json);
  }
  std::cout << where << ": " << pairs.size() << " pairs\n";
  if (!columns.empty()) std::cout << columns_text(where, columns) << '\n';
  std::cout << "source: " << sources.text() << "\ntarget: " << targets.text() << "\n\n";
  for (const size_t i : some)
    std::cout << display_text(pairs[i].source, kWidest) << "\n  " << display_text(pairs[i].target, kWidest) << '\n';
}

void look_at_documents(const std::string& where, const TextLookOptions& options) {
  const auto documents = read_documents(where);
  Lengths lengths;
  std::vector<std::string> sentences;
  for (const auto& document : documents)
    for (const std::string& sentence : document) {
      lengths.add(sentence);
      sentences.push_back(sentence);
    }
  const std::vector<size_t> some = sample_indices(sentences.size(), options.lines);
  if (options.json) {
    Json samples = Json::array();
    for (const size_t i : some) samples.push_back(sentences[i]);
    return print_json_line({{"kind", "documents"},
                            {"source", where},
                            {"documents", documents.size()},
                            {"sentences", sentences.size()},
                            {"words", lengths.json()},
                            {"samples", samples}});
  }
  std::cout << where << ": " << documents.size() << (documents.size() == 1 ? " document, " : " documents, ") << sentences.size()
            << (sentences.size() == 1 ? " sentence\n" : " sentences\n") << "sentences: " << lengths.text() << "\n\n";
  for (const size_t i : some) std::cout << display_text(sentences[i], kWidest) << '\n';
}

bool is_synthetic(const std::string& where) {
  for (const std::string name : {"opinions", "entailment", "numbers"})
    if (where == name || where.starts_with(name + ":") || where.starts_with(name + "/")) return true;
  return false;
}

// A folder of plain texts. Image data may contain a .txt file too, for example batches.meta.txt of CIFAR-10.
bool has_only_texts(const Path& folder) {
  bool texts = false;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() || name.ends_with(".bin") || name.find("-ubyte") != std::string::npos) return false;
    texts = texts || name.ends_with(".txt") || name.ends_with(".txt.gz");
  }
  return texts;
}

bool has_languages(const Path& folder, const LanguageCodes& languages) {
  return (!languages.source.empty() && !languages.target.empty()) || languages_in(folder).size() == 2;
}

void look_at_folder_of_languages(const std::string& where, const TextLookOptions& options) {
  const std::vector<std::string> found = languages_in(where);
  LanguageCodes codes = options.languages;
  if (codes.source.empty() && codes.target.empty() && found.size() == 2) codes = {found[0], found[1]};
  const auto file = [&](const std::string& language) {
    const Path plain = Path(where) / ("train." + language), packed = plain.string() + ".gz";
    return path_exists(packed) && !path_exists(plain) ? packed : plain;
  };
  look_at_parallel(where + ", train." + codes.source + " and train." + codes.target, read_parallel(file(codes.source), file(codes.target)),
                   {}, options);
}

}  // namespace

int64_t word_count(const std::string& text) {
  std::istringstream in(text);
  int64_t words = 0;
  for (std::string word; in >> word;) ++words;
  return words;
}

bool is_text_data(const std::string& where, const TextLookOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::exists(where, ignored) && is_synthetic(where)) return true;
  if (is_file_pair(where)) return true;
  if (std::filesystem::is_directory(where, ignored))
    return train_table_of(where) != where || has_languages(where, options.languages) || has_only_texts(where);
  return is_table_file(where) || where.ends_with(".txt") || where.ends_with(".txt.gz") || is_plain_text(where);
}

// where: a table (.tsv, .csv, .jsonl, each also with .gz) of labelled texts or of translation pairs, or a folder with train.tsv, train.csv
// or train.jsonl; two files of parallel lines separated by a comma, or a folder of them; a text file or a folder of them; or synthetic
// data: "opinions", "entailment" (both also with /validation, /test) and "numbers".
void look_at_text(const std::string& where, const TextLookOptions& options) {
  std::error_code ignored;
  const bool exists = std::filesystem::exists(where, ignored);
  if ((!exists && where.starts_with("numbers")) || is_file_pair(where))
    return look_at_parallel(where, read_translation_data(where, DataPart::train, options.columns), {}, options);
  if (!exists && is_synthetic(where)) return look_at_labelled(where, options);
  const std::string file = train_table_of(where);
  if (is_table_file(file)) {
    const std::string text = read_text_or_gzip(file);
    if (!looks_translated(parse_table(file, text, table_kind(file)), options.columns, options.languages))
      return look_at_labelled(file, options);
    ChosenColumns columns;
    const std::vector<Translation> pairs = parse_translations(file, text, table_kind(file), options.columns, options.languages, &columns);
    return look_at_parallel(file, pairs, columns, options);
  }
  if (std::filesystem::is_directory(where, ignored) && has_languages(where, options.languages))
    return look_at_folder_of_languages(where, options);
  look_at_documents(where, options);
}

}  // namespace heed::cli
