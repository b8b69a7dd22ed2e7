// Shared by the parts of heed data: data.cc for images, data_captions.cc for captions and questions, data_text.cc for texts, data_kind.cc
// for paths that are neither.
#pragma once

#include "heed/data/text_data.h"

namespace heed::cli {

struct TextLookOptions {
  int64_t lines = 5;
  bool json = false;
  TextColumns columns = {};      // of tables
  LanguageCodes languages = {};  // of pairs
};
// Whether the data are texts, not images. Files and synthetic data are recognized by name, folders by their contents.
bool is_text_data(const std::string& where, const TextLookOptions& options);
bool is_plain_text(const std::string& where);       // a file that is no image, archive or the like
void check_no_model(const std::string& where);      // nor a run
void check_holds_images(const std::string& where);  // else a FileError that lists what is read
void look_at_text(const std::string& where, const TextLookOptions& options);
int64_t word_count(const std::string& text);

}  // namespace heed::cli
