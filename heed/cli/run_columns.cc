#include "heed/cli/run_columns.h"

#include <algorithm>

#include "heed/core/parse.h"
#include "heed/data/text_parts.h"
#include "heed/io/paths.h"
#include "heed/train/model_folder.h"
#include "heed/train/run_json.h"

namespace heed::cli {
namespace {

bool has_column(const Table& table, const std::string& word) {
  if (table.rows.empty()) return false;
  const std::vector<std::string>& first = table.rows.front().cells;
  const std::optional<size_t> number = is_column_number(word) ? parse_number<size_t>(word) : std::nullopt;
  if (number && *number >= 1 && *number <= first.size()) return true;
  return ColumnNames(table.columns.empty() ? first : table.columns).find(word) != kNoColumn;
}

}  // namespace

void add_data_settings_of_run(const Path& model, const std::string& data, TextColumns& columns, LanguageCodes& languages,
                              DataSettings& other) {
  const Path run = run_of_model(model);
  const bool is_table = is_table_file(data) && is_plain_file(data);
  if (run.empty() || (!is_table && !is_folder(data))) return;
  const std::optional<RunJson> about = read_run_json(run);
  if (!about) return;
  const std::vector<DataSetting> settings = data_settings(columns, languages, other);
  std::optional<std::string> text;  // of the table
  std::optional<Table> table;
  for (const DataSetting& each : settings) {
    const auto found = about->settings.find(each.key);
    if (!each.value->empty() || each.key == "image_folder" || found == about->settings.end() || !found->is_string()) continue;
    const std::string word = found->get<std::string>();
    const auto names_same = [&](const DataSetting& set) { return plain_name(*set.value) == plain_name(word); };
    if (word.empty() || std::any_of(settings.begin(), settings.end(), names_same)) continue;
    if (each.key.ends_with("_column")) {
      if (!is_table) continue;
      if (!text) text = read_text_or_gzip(data), table = parse_table(data, *text, table_kind(data));
      if (!has_column(*table, word)) continue;
    }
    *each.value = word;
  }
}

void add_columns_of_run(const Path& model, const std::string& file, TextColumns& columns) {
  LanguageCodes languages;
  DataSettings other;
  add_data_settings_of_run(model, file, columns, languages, other);
}

}  // namespace heed::cli
