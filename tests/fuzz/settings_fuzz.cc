// Any text as a config.toml of `heed train`: refused, or values that can be written back as TOML.
#include <cstdlib>

#include "heed/train/settings_toml.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  fuzz::write_file("config.toml", fuzz::text_of(data, size));
  try {
    for (const TomlValue& each : read_toml(fuzz::folder() / "config.toml", [](const std::string& table) { return table == "model"; }))
      if (toml_line(each.key, each.value).empty()) std::abort();
  } catch (const FileError&) {
  }
}
