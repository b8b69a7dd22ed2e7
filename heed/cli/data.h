// Shared by the parts of heed data: data.cc for images, data_captions.cc for captions and questions, data_text.cc for texts.
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
void look_at_text(const std::string& where, const TextLookOptions& options);
int64_t word_count(const std::string& text);

}  // namespace heed::cli
