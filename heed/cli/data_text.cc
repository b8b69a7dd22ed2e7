// heed data look, for texts.
#include "heed/cli/data.h"
#include "heed/core/check.h"

namespace heed::cli {

void look_at_text(const std::string& where, const TextLook&) {
  fail<UsageError>("data look: found a text, ", where, ", expected pictures");
}

}  // namespace heed::cli
