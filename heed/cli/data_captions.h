// heed data look for images with captions, and for questions about texts.
#pragma once

#include "heed/cli/data_settings.h"
#include "heed/cli/data_sheet.h"

namespace heed::cli {

struct CaptionLookOptions {
  int64_t lines = 5;
  bool json = false;
  std::string sheet = {};
  SheetOptions drawing = {};
};
void look_at_captions(const std::string& where, const DataSettings& settings, const CaptionLookOptions& options);
void look_at_questions(const std::string& where, const DataSettings& settings, int64_t lines, bool json);

}  // namespace heed::cli
