// What the halves of heed data share: pictures are looked at in data.cc, texts in data_text.cc.
#pragma once

#include <cstdint>
#include <string>

namespace heed::cli {

struct TextLook {
  int64_t lines = 5;
  bool json = false;
};
void look_at_text(const std::string& where, const TextLook& options);

}  // namespace heed::cli
