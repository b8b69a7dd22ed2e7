// What the halves of heed data share: pictures are looked at in data.cc, texts in data_text.cc.
#pragma once

#include "heed/data/text_data.h"

namespace heed::cli {

struct TextLook {
  int64_t lines = 5;
  bool json = false;
  TextColumns columns = {};      // of tables
  LanguageCodes languages = {};  // of pairs
};
// Whether there are texts, not images: files and words made by rule by their names, folders by what is in them.
bool is_text_data(const std::string& where, const TextLook& options);
void look_at_text(const std::string& where, const TextLook& options);

}  // namespace heed::cli
