// Any bytes as config.json and model.safetensors: refused, or a model whose parameters can be read. An input is the config, a zero byte
// and the checkpoint.
#include <cstdlib>

#include "heed/models/model.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  const std::string_view text = fuzz::text_of(data, size);
  const size_t end = std::min(text.find('\0'), text.size());
  fuzz::write_file("config.json", text.substr(0, end));
  fuzz::write_file("model.safetensors", text.substr(std::min(end + 1, text.size())));
  try {
    const Model model = load(fuzz::folder());
    int64_t count = 0;
    for (const Parameter& each : model.params().all()) count += static_cast<int64_t>(each.tensor.to_vector<float>().size());
    if (count < model.params().count()) std::abort();
  } catch (const FileError&) {
  }
}
