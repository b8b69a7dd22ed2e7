// Settings of heed train that say where data are in tables and folders, as arguments of other commands: text_column=review.
#pragma once

#include "heed/data/captions.h"
#include "heed/data/questions.h"
#include "heed/data/text_data.h"

namespace heed::cli {

// Of images with captions and of questions.
struct DataSettings {
  CaptionColumns captions = {};
  std::string image_folder = {};
  QuestionColumns questions = {};
};
struct DataSetting {
  std::string key, usage;  // "text_column", "NAME"
  std::string* value;
};
std::vector<DataSetting> data_settings(TextColumns& columns, LanguageCodes& languages, DataSettings& other);
// Reads all arguments; one that is no such setting is an error that lists them. command: for that error
void take_data_settings(const char* command, std::vector<std::string> arguments, TextColumns& columns, LanguageCodes& languages,
                        DataSettings& other);

}  // namespace heed::cli
