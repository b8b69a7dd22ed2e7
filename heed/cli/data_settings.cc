#include "heed/cli/data_settings.h"

#include <algorithm>

#include "heed/cli/sentence_reader.h"
#include "heed/core/parse.h"

namespace heed::cli {

std::vector<DataSetting> data_settings(TextColumns& columns, LanguageCodes& languages, DataSettings& other) {
  std::vector<DataSetting> known;
  for (const auto& [key, column] : column_settings()) known.push_back({key, "NAME", &(columns.*column)});
  known.insert(known.end(), {{"source", "LANGUAGE", &languages.source},
                             {"target", "LANGUAGE", &languages.target},
                             {"image_folder", "FOLDER", &other.image_folder},
                             {"image_column", "NAME", &other.captions.image},
                             {"caption_column", "NAME", &other.captions.caption},
                             {"question_column", "NAME", &other.questions.question},
                             {"context_column", "NAME", &other.questions.context},
                             {"answer_column", "NAME", &other.questions.answer}});
  return known;
}

void take_data_settings(const char* command, std::vector<std::string> arguments, TextColumns& columns, LanguageCodes& languages,
                        DataSettings& other) {
  const std::vector<DataSetting> known = data_settings(columns, languages, other);
  std::string usage;
  for (const DataSetting& each : known)
    usage += (usage.empty() ? "" : &each == &known.back() ? " or " : ", ") + each.key + "=" + each.usage;
  for (const std::string& argument : arguments) {
    const std::optional<KeyValue> given = parse_key_value(argument);
    const auto found = std::find_if(known.begin(), known.end(), [&](const DataSetting& each) { return given && given->key == each.key; });
    check<UsageError>(found != known.end(), command, ": found ", in_quotes(argument), ", expected ", usage);
    *found->value = given->value;
  }
}

}  // namespace heed::cli
