#include "heed/train/translate_data.h"

#include <algorithm>
#include <map>

#include "heed/train/batch_order.h"

namespace heed {
namespace {

constexpr int64_t kEvaluationNumbers = 1000;  // for validation and test each
constexpr int64_t kShownNumbers = 10'000;

NumberLanguage number_language(const std::string& key, const std::string& name) {
  static const std::map<std::string, NumberLanguage> known{
      {"english", NumberLanguage::english}, {"german", NumberLanguage::german}, {"french", NumberLanguage::french}};
  const auto found = known.find(name);
  check<UsageError>(found != known.end(), "translate: found ", key, "=", name, " of data=numbers, expected english, german or french");
  return found->second;
}

ParallelTexts synthetic_parts(const ParallelOptions& options) {
  const NumberLanguage from = number_language("source", options.source), to = number_language("target", options.target);
  check<UsageError>(options.count > 0, "translate: found count=", options.count, " of data=numbers, expected 1 or more");
  const auto part = [&](DataPart which, int64_t count) { return synthetic_numbers(count, 1, from, to, which); };
  return {part(DataPart::train, options.count), part(DataPart::validation, kEvaluationNumbers), part(DataPart::test, kEvaluationNumbers)};
}

// "train.en.gz", "en" -> "train"; empty if it does not match
std::string stem_of(std::string name, const std::string& language) {
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  const std::string end = "." + language;
  return name.ends_with(end) ? name.substr(0, name.size() - end.size()) : "";
}

// The pair of files NAME.SOURCE and NAME.TARGET for the first of the names that exists.
ParallelFiles files_in(const Path& folder, const LanguageCodes& languages, const std::vector<std::string>& names) {
  std::map<std::string, std::string> sources, targets;  // stem -> file
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (const std::string stem = stem_of(name, languages.source); !stem.empty()) sources[stem] = entry.path().string();
    if (const std::string stem = stem_of(name, languages.target); !stem.empty()) targets[stem] = entry.path().string();
  }
  for (const std::string& name : names)
    for (const auto& [stem, file] : sources)
      if (stem == name || (name == "test" && stem.starts_with(name))) {
        const auto other = targets.find(stem);
        check<FileError>(other != targets.end(), file, ": found no ", stem, ".", languages.target, " or ", stem, ".", languages.target,
                         ".gz next to it, expected its translation");
        return {file, other->second};
      }
  return {};
}

std::string extensions_in(const Path& folder) {
  std::string out;
  for (const std::string& language : languages_in(folder)) out += (out.empty() ? "" : ", ") + language;
  return out.empty() ? "none" : out;
}

void check_languages(const Path& folder, const LanguageCodes& languages) {
  check<UsageError>(!languages.source.empty() && !languages.target.empty(),
                    "found no source= and target=, expected both: the file extensions of the languages, for example en and de; "
                    "extensions of train in ",
                    folder.string(), ": ", extensions_in(folder));
  check<UsageError>(languages.source != languages.target, "found source=", languages.source, " and target=", languages.target,
                    ", expected two languages");
}

void fill_from_folder(const Path& folder, ParallelOptions& options) {
  check<FileError>(std::filesystem::is_directory(folder), folder.string(),
                   ": found no folder and no table, expected a .tsv, .csv or .jsonl file (also .gz), a folder with train.SOURCE and ",
                   "train.TARGET, two files separated by a comma, or numbers");
  const LanguageCodes languages{options.source, options.target};
  check_languages(folder, languages);
  options.train = files_in(folder, languages, {"train"});
  check<FileError>(!options.train.source.empty(), folder.string(), ": found no train.", options.source, " or train.", options.source,
                   ".gz, expected one; extensions of train: ", extensions_in(folder));
  if (options.validation.source.empty()) options.validation = files_in(folder, languages, kValidationNames);
  if (options.test.source.empty()) options.test = files_in(folder, languages, {"test"});
}

// A part of a folder of parallel text.
std::vector<Translation> read_folder_part(const Path& folder, DataPart part, const LanguageCodes& languages) {
  check_languages(folder, languages);
  const std::vector<std::string> names = part == DataPart::test         ? std::vector<std::string>{"test"}
                                         : part == DataPart::validation ? kValidationNames
                                                                        : std::vector<std::string>{"train"};
  const ParallelFiles files = files_in(folder, languages, names);
  check<FileError>(!files.source.empty(), folder.string(), ": found no ", names[0], ".", languages.source,
                   ", expected one; extensions of train: ", extensions_in(folder));
  return read_parallel(files.source, files.target);
}

std::vector<Translation> translation_part(const char* name, const ParallelFiles& files) {
  check<UsageError>(files.source.empty() == files.target.empty(), "translate: found one of ", name, "_source and ", name,
                    "_target, expected both");
  return files.source.empty() ? std::vector<Translation>{} : read_parallel(files.source, files.target);
}

std::vector<Translation> chosen(const std::vector<Translation>& all, std::span<const int64_t> which) {
  std::vector<Translation> out;
  for (const int64_t i : which) out.push_back(all[static_cast<size_t>(i)]);
  return out;
}

void read_tables(const ParallelOptions& where, ParallelTexts& out) {
  const LanguageCodes languages{where.source, where.target};
  ChosenColumns columns;
  out.train = read_translations(where.data, where.columns, languages, &columns);
  if (!columns.empty()) out.columns = columns_text(where.data, columns);
  const auto read = [&](const std::string& setting, const std::vector<std::string>& names, std::vector<Translation>& part) {
    const std::string file = setting.empty() ? sibling_table(where.data, names) : setting;
    if (part.empty() && !file.empty()) part = read_translations(file, where.columns, languages);
  };
  read(where.validation_data, kValidationNames, out.validation);
  read(where.test_data, {"test"}, out.test);
}

}  // namespace

std::vector<std::string> languages_in(const Path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    if (name.starts_with("train.") && !is_table_file(name)) out.push_back(name.substr(6));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<Translation> read_translation_data(const std::string& where, DataPart part, const TextColumns& columns,
                                               const LanguageCodes& languages, ChosenColumns* chosen) {
  if (std::filesystem::is_directory(where)) return read_folder_part(where, part, languages);
  const bool is_synthetic = where == "numbers" || where.starts_with("numbers:");
  check<UsageError>(
      is_synthetic || is_table_file(where) || is_file_pair(where), "found ", in_quotes(where),
      ", expected a .tsv, .csv or .jsonl file of pairs, two files separated by a comma, SOURCE,TARGET, a folder of parallel text, or ",
      "numbers");
  if (!is_synthetic) return read_translations(where, columns, languages, chosen);
  const size_t second = where.find(':', std::min(where.size(), size_t{8}));
  check<UsageError>(where == "numbers" || second != std::string::npos, "found ", in_quotes(where),
                    ", expected numbers or numbers:SOURCE:TARGET, of english, german and french");
  ParallelOptions synthetic{.source = "english", .target = "german", .count = kShownNumbers};
  if (where != "numbers") synthetic.source = where.substr(8, second - 8), synthetic.target = where.substr(second + 1);
  ParallelTexts parts = synthetic_parts(synthetic);
  return part == DataPart::train ? parts.train : part == DataPart::test ? parts.test : parts.validation;
}

void declare(Settings& settings, ParallelOptions& options) {
  settings.heading("Sentences");
  settings.add("data", options.data,
               "A .tsv, .csv or .jsonl file of pairs, also .gz; a folder with train.en, train.de, val.en, ...; numbers: synthetic",
               {.path = true, .synthetic = {"numbers"}});
  settings.add("source", options.source, "Source language: its column or file extension; for numbers english, german or french (english)");
  settings.add("target", options.target, "Target language: its column or file extension; for numbers english, german or french (german)");
  settings.add("source_column", options.columns.source, "Name or number of the source column; empty: detected");
  settings.add("target_column", options.columns.target, "Name or number of the target column; empty: detected");
  settings.add("validation_data", options.validation_data, "Validation table; empty: dev.* next to train.*, or a fraction of data",
               {.path = true});
  settings.add("test_data", options.test_data, "Test table; empty: test.* next to train.*", {.path = true});
  settings.add("count", options.count, "Train on this many pairs; 0: all, or 20000 numbers", {.least = 0, .most = 1e9});
  const auto add = [&](const std::string& part, ParallelFiles& files, const std::string& what) {
    settings.add(part + "_source", files.source, what, {.path = true});
    settings.add(part + "_target", files.target, "Its translation, line by line", {.path = true});
  };
  add("train", options.train, "Training file, instead of the folder's");
  add("validation", options.validation, "Validation file");
  add("test", options.test, "Test file");
}

ParallelTexts read_parallel_texts(const ParallelOptions& options, double share, uint64_t seed) {
  if (options.is_synthetic()) return synthetic_parts(options);
  ParallelOptions where = options;
  where.data = train_table_of(where.data);
  const bool is_table = where.train.source.empty() && where.train.target.empty() && (is_table_file(where.data) || is_file_pair(where.data));
  if (where.train.source.empty() && where.train.target.empty() && !is_table) fill_from_folder(where.data, where);
  ParallelTexts out{translation_part("train", where.train), translation_part("validation", where.validation),
                    translation_part("test", where.test)};
  if (is_table) read_tables(where, out);
  const int64_t all = std::ssize(out.train);
  if (where.count > 0 && where.count < all) {
    std::vector<int64_t> some;  // strided, as files often concatenate several sources
    for (int64_t i = 0; i < where.count; ++i) some.push_back(i * all / where.count);
    out.train = chosen(out.train, some);
  }
  if (!out.validation.empty()) return out;
  check<FileError>(out.train.size() > 1, is_table ? where.data : where.train.source,
                   ": found one pair of sentences and no validation part, expected more");
  const Split parts = split(std::ssize(out.train), std::max(share, 1e-6), seed);
  out.validation = chosen(out.train, parts.held_out);
  out.train = chosen(out.train, parts.kept);
  return out;
}

std::vector<int64_t> EncodedPairs::lengths() const {
  std::vector<int64_t> out;
  for (size_t i = 0; i < texts.size(); ++i) out.push_back(std::ssize(source[i]) + std::ssize(target[i]));
  return out;
}

EncodedPairs encode_pairs(std::vector<Translation> texts, const Tokenizer& source, const Tokenizer& target, int64_t most) {
  EncodeOptions encode_options;
  encode_options.max_length = most;
  const auto tokens = [&](const Tokenizer& tokenizer, std::string Translation::*side) {
    std::vector<std::string> lines;
    for (const Translation& each : texts) lines.push_back(each.*side);
    std::vector<std::vector<int64_t>> out;
    for (const Encoding& encoding : tokenizer.encode_all(lines, encode_options)) out.emplace_back(encoding.ids.begin(), encoding.ids.end());
    return out;
  };
  EncodedPairs out{.source = tokens(source, &Translation::source), .target = tokens(target, &Translation::target)};
  out.texts = std::move(texts);
  return out;
}

EncodedPairs drop_long_pairs(EncodedPairs pairs, int64_t most) {
  EncodedPairs out;
  for (size_t i = 0; i < pairs.texts.size(); ++i) {
    if (std::ssize(pairs.source[i]) > most || std::ssize(pairs.target[i]) > most) continue;
    out.texts.push_back(std::move(pairs.texts[i]));
    out.source.push_back(std::move(pairs.source[i]));
    out.target.push_back(std::move(pairs.target[i]));
  }
  return out;
}

}  // namespace heed
